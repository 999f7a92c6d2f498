package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// pipeline carries spans from the services' SDK to ClickHouse, through the SDK's OTLP exporter and
// the Collector's ClickHouse exporter, without a network or a Collector between them.
type pipeline struct {
	ids       sdktrace.IDGenerator
	collector exporter.Traces
	providers []*sdktrace.TracerProvider

	stored, lost atomic.Int64
	failure      atomic.Pointer[error] // the first one
}

// exporterTable is the table that the exporter creates by default.
const exporterTable = "otel_traces_exporter"

// newPipeline stores spans in the table otel_traces, which must exist.
func newPipeline(ctx context.Context, dsn string, ids sdktrace.IDGenerator) (*pipeline, error) {
	collector, err := startExporter(ctx, dsn, "otel_traces", false)
	return &pipeline{ids: ids, collector: collector}, err
}

func startExporter(ctx context.Context, dsn, table string, create bool) (exporter.Traces, error) {
	factory := clickhouseexporter.NewFactory()
	config := factory.CreateDefaultConfig().(*clickhouseexporter.Config)
	config.Endpoint, config.TracesTableName, config.CreateSchema = dsn, table, create
	config.AsyncInsert = false                                                    // an acknowledged batch is stored
	config.QueueSettings = configoptional.None[exporterhelper.QueueBatchConfig]() // the SDK's batches are enough
	config.BackOffConfig.Enabled = false                                          // the user must see errors, and a retry may store spans twice
	e, err := factory.CreateTraces(ctx, exportertest.NewNopSettings(factory.Type()), config)
	if err == nil {
		err = e.Start(ctx, componenttest.NewNopHost())
	}
	if err != nil {
		return nil, fmt.Errorf("the Collector's exporter: %w", err)
	}
	return e, nil
}

// provider returns the TracerProvider of one service. The services share one ID generator, as
// parts of one process should.
func (p *pipeline) provider(ctx context.Context, service string) (*sdktrace.TracerProvider, error) {
	otlp, err := otlptrace.New(ctx, direct{p})
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(p.ids),
		sdktrace.WithResource(resource.NewSchemaless(semconv.ServiceName(service))),
		sdktrace.WithBatcher(otlp, sdktrace.WithBlocking()), // wait rather than drop
	)
	p.providers = append(p.providers, provider)
	return provider, nil
}

// flush returns when every ended span is in ClickHouse, or with the reason why one is not.
func (p *pipeline) flush(ctx context.Context) error {
	var err error
	for _, provider := range p.providers {
		err = errors.Join(err, provider.ForceFlush(ctx))
	}
	return cmp.Or(p.loss(), err)
}

func (p *pipeline) close(ctx context.Context) error {
	var err error
	for _, provider := range p.providers {
		err = errors.Join(err, provider.Shutdown(ctx))
	}
	err = errors.Join(err, p.collector.Shutdown(ctx))
	return cmp.Or(p.loss(), err)
}

// errLost is returned when ClickHouse did not store all spans.
var errLost = errors.New("spans were lost")

func (p *pipeline) loss() error {
	if n := p.lost.Load(); n > 0 {
		return fmt.Errorf("%w: %d were not stored: %w", errLost, n, *p.failure.Load())
	}
	return nil
}

// direct is an OTLP client that calls the exporter directly.
type direct struct{ *pipeline }

// Start implements otlptrace.Client.
func (direct) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (direct) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client.
func (c direct) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	wire, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(wire)
	if err != nil {
		return err
	}
	n := int64(traces.SpanCount())
	if err := c.collector.ConsumeTraces(ctx, traces); err != nil {
		c.failure.CompareAndSwap(nil, &err)
		c.lost.Add(n)
		return err
	}
	c.stored.Add(n)
	return nil
}
