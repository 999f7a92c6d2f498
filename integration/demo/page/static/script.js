// Copies IDs, and lets the browser start a traced request as the first service of the trace.
import { TraceflakeIdGenerator } from './traceflake.js';

(() => {
  const said = document.getElementById('said');

  // copy puts text on the clipboard, even if the page may not use the Clipboard API because it was
  // loaded over plain HTTP from another host.
  async function copy(text, shown) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const range = document.createRange();
    range.selectNodeContents(shown);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (!document.execCommand('copy')) throw new Error('the browser refused');
  }

  for (const button of document.querySelectorAll('button.copy')) {
    const label = button.firstChild;
    let reset;
    button.addEventListener('click', async () => {
      try {
        await copy(button.dataset.copy, button.previousElementSibling);
        label.data = 'Copied';
        said.textContent = 'Copied ' + button.dataset.copy;
      } catch (err) {
        label.data = 'Failed';
        said.textContent = 'Not copied: ' + err.message;
      }
      clearTimeout(reset);
      reset = setTimeout(() => { label.data = 'Copy'; said.textContent = ''; }, 2000);
    });
    button.hidden = false;
  }
})();

(() => {
  const form = document.getElementById('start');
  if (!form) return;
  const status = document.getElementById('status');
  const button = form.querySelector('button');

  const ids = new TraceflakeIdGenerator();

  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  // stored waits until the trace can be found.
  async function stored(id) {
    const until = performance.now() + 15000;
    for (let wait = 50; performance.now() < until; wait = Math.min(wait * 2, 1000)) {
      const answer = await fetch('/traces/' + id, { method: 'HEAD' });
      if (answer.ok) return;
      if (answer.status !== 404) throw new Error('looking for it: ' + answer.status + ' ' + answer.statusText);
      await pause(wait);
    }
    throw new Error('it was not stored within 15 seconds');
  }

  async function start(method, path) {
    const id = ids.generateTraceId();
    status.textContent = 'Trace ' + id + ': sent, waiting for the response.';
    try {
      const answer = await fetch(form.dataset.edge + path, {
        method,
        headers: {
          'x-trace-id': id,
          'X-B3-TraceId': id,
          'X-B3-SpanId': ids.generateSpanId(),
          'X-B3-Sampled': '1',
        },
      });
      const got = answer.headers.get('x-trace-id');
      if (got !== id) throw new Error('the response names ' + (got || 'no trace'));
      status.textContent = 'Trace ' + id + ': answered ' + answer.status + ', waiting until it is stored.';
      await stored(id);
      location.assign('/traces/' + id);
    } catch (err) {
      status.textContent = 'Trace ' + id + ': ' + err.message + '.';
      status.className = 'error';
    }
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const [method, path] = form.elements.route.value.split(' ');
    status.className = '';
    button.disabled = true;
    await start(method, path);
    button.disabled = false;
  });
  window.addEventListener('pageshow', () => { status.textContent = ''; }); // also after "back"
  form.hidden = false;
})();
