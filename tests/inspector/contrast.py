"""JavaScript that finds text of too little contrast, as WCAG 2.1 (1.4.3) computes it."""

from __future__ import annotations

LOW_CONTRAST = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((one) => {
      const share = one / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const over = (front, back) => {
    const alpha = front[3] ?? 1;
    return [0, 1, 2].map((at) => front[at] * alpha + back[at] * (1 - alpha));
  };
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const color = channels(getComputedStyle(node).backgroundColor);
    return (color[3] ?? 1) === 1 ? color : over(color, behind(node.parentElement));
  };
  const opacity = (node) =>
    node ? Number(getComputedStyle(node).opacity) * opacity(node.parentElement) : 1;
  const root = document.querySelector('dialog[open]') ?? document.body;
  const found = [];
  for (const node of root.querySelectorAll('*')) {
    const text = [...node.childNodes].filter((child) => child.nodeType === 3)
      .map((child) => child.data).join('').trim();
    const shown = node.checkVisibility() && node.getBoundingClientRect().width > 1;
    if (!text || !shown || node.closest(':disabled, option, .unheard, .skip')) continue;
    const style = getComputedStyle(node);
    const back = behind(node);
    const color = channels(style.color);
    const front = over([...color.slice(0, 3), (color[3] ?? 1) * opacity(node)], back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""
