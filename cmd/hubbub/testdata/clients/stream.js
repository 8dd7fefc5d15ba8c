// A client of the service in Node.js, with the library ws.
//
// It creates a stream, sends raw audio (pcm_f32le, 16 kHz, mono) in real time,
// and prints the messages as they come, one a line; on the last line how it
// ended.
//
// usage: stream.js BASE_URL CA_FILE AUDIO     (the key is in API_KEY)
'use strict';
const fs = require('fs');
const https = require('https');
const WebSocket = require('ws');

const chunk = 6400; // bytes: 100 ms
const [base, caFile, audioFile] = process.argv.slice(2);
const ca = fs.readFileSync(caFile);
const audio = fs.readFileSync(audioFile);

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = https.request(base + path, {
      method, ca, headers: { Authorization: 'Bearer ' + process.env.API_KEY, 'Content-Type': 'application/json' },
    }, (response) => {
      let text = '';
      response.on('data', (part) => { text += part; });
      response.on('end', () => {
        if (response.statusCode >= 300) reject(new Error(response.statusCode + ' ' + text));
        else resolve(JSON.parse(text));
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

function send(ws) {
  const began = Date.now();
  let sent = 0;
  const next = () => {
    if (ws.readyState !== WebSocket.OPEN) return;
    if ((sent + 1) * chunk > audio.length) {
      ws.send(JSON.stringify({ type: 'end_of_stream' }));
      return;
    }
    ws.send(audio.subarray(sent * chunk, (sent + 1) * chunk));
    sent += 1;
    setTimeout(next, began + sent * 100 - Date.now());
  };
  next();
}

async function main() {
  const live = await call('POST', '/v1/live', '{}');
  const ws = new WebSocket(live.url, { ca });
  const code = await new Promise((resolve, reject) => {
    ws.on('open', () => send(ws));
    ws.on('message', (data) => console.log(data.toString()));
    ws.on('error', reject);
    ws.on('close', resolve);
  });
  let status = 'running';
  while (status === 'running') status = (await call('GET', '/v1/live/' + live.id)).status;
  console.log(JSON.stringify({ id: live.id, close: code, status }));
}

main().catch((err) => { console.error(err); process.exit(1); });
