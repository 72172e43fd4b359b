// What scrolls sideways can be reached with the keyboard, and has a name; the theme wraps tables once the page is there.
const wide = ".md-typeset__scrollwrap, .md-typeset pre > code";
const name = box => {
  const heads = [...box.closest("article")?.querySelectorAll("h1, h2, h3") ?? []];
  const before = heads.filter(head => head.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
  const kind = box.matches("code") ? "Code" : "Table";
  return before ? `${kind}: ${before.firstChild.textContent.trim()}` : kind;
};
const reach = () => {
  for (const buttons of document.querySelectorAll("nav.md-code__nav")) buttons.setAttribute("role", "presentation");
  for (const box of document.querySelectorAll(wide)) {
    const scrolls = box.scrollWidth > box.clientWidth;
    if (!scrolls) {
      box.removeAttribute("tabindex");
      box.removeAttribute("role");
      box.removeAttribute("aria-label");
    } else if (!box.hasAttribute("aria-label")) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", name(box));
    }
  }
};
new ResizeObserver(reach).observe(document.body);
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
addEventListener("toggle", reach, true);
