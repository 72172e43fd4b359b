#!/bin/bash
# Sourced by scripts that download packages, which they unpack themselves.
# apt_folder FOLDER: the options in ${apt[@]} give apt-get a folder of its own, as if nothing were installed.
apt_folder() {
  mkdir -p "$1/lists/partial" "$1/archives/partial"
  touch "$1/status"
  apt=(-qq -o Dir::State="$1" -o Dir::State::status="$1/status" -o Dir::Cache="$1" -o Debug::NoLocking=true)
  apt+=(-o APT::Sandbox::User=root)
}
