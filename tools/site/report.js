// A report is as light or dark as the pages of the site, whose choice the theme keeps under the site's address.
{
  const key = new URL(".", document.currentScript.src).pathname + ".__palette";
  const follow = () => {
    const color = JSON.parse(localStorage.getItem(key))?.color;
    if (color) document.documentElement.dataset.scheme = color.scheme === "slate" ? "dark" : "light";
  };
  follow();
  addEventListener("storage", follow);
}
