// Sends a request to a URL and prints what was sent: node test/node.js URL
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { client } from './client.js';

console.log(JSON.stringify(await client(NodeTracerProvider).request(process.argv[2])));
