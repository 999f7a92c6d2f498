import { NodeSDK } from '@opentelemetry/sdk-node';
import { TraceflakeIdGenerator } from '@traceflake/otel';

new NodeSDK({ idGenerator: new TraceflakeIdGenerator() }).start();
