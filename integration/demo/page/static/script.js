// Lets the browser start a traced request as the first service of the trace.
import { TraceflakeIdGenerator } from './traceflake.js';

const form = document.getElementById('start');
const status = document.getElementById('status');
const ids = new TraceflakeIdGenerator();

// stored waits until the trace can be found.
async function stored(id) {
  const until = performance.now() + 15000;
  for (let wait = 50; performance.now() < until; wait = Math.min(wait * 2, 1000)) {
    const response = await fetch('/traces/' + id, { method: 'HEAD' });
    if (response.ok) return;
    if (response.status !== 404) throw new Error('looking for it: ' + response.status + ' ' + response.statusText);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  throw new Error('it was not stored within 15 seconds');
}

async function start(method, path) {
  const id = ids.generateTraceId();
  const edge = `http://${location.hostname}:${form.dataset.port}`;
  status.textContent = 'Trace ' + id + ': sent, waiting for the response.';
  try {
    const response = await fetch(edge + path, {
      method,
      headers: {
        'x-trace-id': id,
        'X-B3-TraceId': id,
        'X-B3-SpanId': ids.generateSpanId(),
        'X-B3-Sampled': '1',
      },
    });
    const got = response.headers.get('x-trace-id');
    if (got !== id) throw new Error('the response has ' + (got || 'no trace ID'));
    status.textContent = 'Trace ' + id + ': answered ' + response.status + ', waiting until it is stored.';
    await stored(id);
    location.assign('/traces/' + id);
  } catch (err) {
    status.textContent = 'Trace ' + id + ': ' + err.message + '.';
  }
}

if (form) {
  const button = form.querySelector('button');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    await start(...form.elements.route.value.split(' '));
    button.disabled = false;
  });
  window.addEventListener('pageshow', () => { status.textContent = ''; }); // also after "back"
  form.hidden = false;
}
