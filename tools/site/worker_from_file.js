// Browsers refuse to start a Worker from a file:// address, and the site's search is one. On such an address a hidden frame
// runs the worker's script instead; messages go to and fro as
// events, with copies of the data.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => this.answer(structuredClone(data));
      inside.importScripts = (...scripts) => Promise.all(scripts.map(script => this.load(script)));
      this.ready = this.load(String(address));
    }
    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = new URL(address, document.baseURI);
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
    }
    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(event));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
