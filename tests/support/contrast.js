// Texts on the page whose contrast with what lies behind them is below 4.5 (WCAG AA).
const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const parse = (text) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = text; pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data]; };
const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const behind = (node) => { for (let it = node; it; it = it.parentElement) {
  const c = parse(getComputedStyle(it).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255, 255]; };
const poor = [];
const parts = 'h2, small, label, button, .ask, .tag, .soft, summary, .tabs a, .brand, .link';
for (const node of document.querySelectorAll(parts)) {
  if (!node.textContent.trim() || !node.checkVisibility() || node.closest('.term')) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) poor.push(`${node.className || node.tagName} ${node.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
}
return poor;
