import { WebTracerProvider } from '@opentelemetry/sdk-trace-web';
import { client } from './client.js';

globalThis.client = client(WebTracerProvider);
