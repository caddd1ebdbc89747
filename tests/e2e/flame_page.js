// Looks at a flame graph page in a headless browser and prints what is there as JSON. usage: flame_page.js run|interpreter PAGE IMAGE
const { chromium } = require('playwright-core');

(async () => {
  const [, , script, page_file, image] = process.argv;
  const browser = await chromium.launch({ executablePath: process.env.BROWSER_PATH, args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const report = { errors: [] };
  page.on('pageerror', error => report.errors.push(String(error)));
  page.on('console', message => { if (message.type() === 'error') report.errors.push(message.text()); });
  page.on('request', request => { if (!request.url().startsWith('file:') && !request.url().startsWith('data:')) report.errors.push('fetched ' + request.url()); });
  await page.goto('file://' + page_file);
  const view = async () => ({ boxes: await page.evaluate(() => window.tachoFlame.boxes()) });
  if (script === 'interpreter') {
    report.note = await page.textContent('#hidden');
    report.hidden = await view();
    await page.click('#interpreter');
    report.shown = await view();
    await page.screenshot({ path: image });
    await page.click('#interpreter');
    report.again = await view();
    await browser.close();
    process.stdout.write(JSON.stringify(report));
    return;
  }
  report.title = await page.textContent('#title');
  report.host = await view();
  await page.screenshot({ path: image });
  await page.click('#both');
  report.both = await view();
  await page.click('#gpu');
  report.gpu = await view();
  // Zoom into a kernel, see what the pointer shows, and come back.
  const box = report.gpu.boxes.find(b => b.part === 'device');
  const at = { x: box.x + Math.min(box.w, 40) / 2, y: box.depth * 19 + 10 };
  await page.hover('#canvas', { position: at });
  report.tip = await page.textContent('#tip');
  await page.click('#canvas', { position: at });
  report.zoomed = (await view()).boxes.find(b => b.label === box.label && b.depth === box.depth);
  await page.click('#reset');
  await page.fill('#search', 'wor[k]');
  report.matched = await page.textContent('#matched');
  await page.fill('#search', 'nothing has this name');
  report.noMatch = await page.textContent('#matched');
  await page.fill('#search', '');
  await page.click('#bottom-up');
  report.inverted = await view();
  await browser.close();
  process.stdout.write(JSON.stringify(report));
})().catch(error => { console.error(error); process.exit(1); });
