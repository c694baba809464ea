// Tooltip shared by all pictures: a head, and lines of name and value.
kt.tip = (x, y, head, lines) => {
  const tip = byId("tip");
  tip.replaceChildren(kt.make("b", {}, head), kt.make("dl", {}, ...lines.flatMap(([name, value]) =>
    [kt.make("dt", {}, name), kt.make("dd", {}, value)])));
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = tip;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + "px";
  tip.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 10) : y + 18) + "px";
};
kt.untip = () => { byId("tip").hidden = true; };
window.addEventListener("scroll", kt.untip, { passive: true });
window.addEventListener("keydown", (event) => { if (event.key === "Escape") kt.untip(); });
