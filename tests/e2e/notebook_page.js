// Looks at a notebook's cell of %%tacho in a headless browser: prints the frame's text, its address after a change of the view, and
// what went wrong, as JSON. usage: notebook_page.js FILE.html
const { chromium } = require('playwright-core');

(async () => {
  const browser = await chromium.launch({ executablePath: process.env.BROWSER_PATH, args: ['--no-sandbox', '--disable-gpu'] });
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (/^https?:/.test(request.url())) faults.push(`loads ${request.url()}`);
  });
  await page.goto(`file://${process.argv[2]}`);
  let frame;
  for (let i = 0; i < 300; ++i) {
    frame = page.frames().find((each) => each.url().startsWith('blob:'));
    if (frame !== undefined && (await frame.evaluate(() => (window.tacho?.app.overview ?? null) !== null))) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  await frame.getByText('Timeline', { exact: true }).first().click();
  await frame.waitForFunction(() => location.hash.includes('view=timeline'));
  console.log(JSON.stringify({ text: await frame.evaluate(() => document.body.innerText), faults }));
  await browser.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
