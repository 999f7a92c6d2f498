package main

import (
	"context"
	"errors"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// startCollector runs two parts of the OpenTelemetry Collector, the receiver of OTLP and the
// ClickHouse exporter, and returns the URL to which services send their spans.
func startCollector(ctx context.Context, dsn string) (endpoint string,
	stop func(context.Context) error, err error) {
	clickhouse := clickhouseexporter.NewFactory()
	to := clickhouse.CreateDefaultConfig().(*clickhouseexporter.Config)
	to.Endpoint, to.CreateSchema = dsn, false
	// an acknowledged batch is stored
	to.AsyncInsert = false
	// the SDK's batches are enough
	to.QueueSettings = configoptional.None[exporterhelper.QueueBatchConfig]()
	// the SDK repeats what failed
	to.BackOffConfig.Enabled = false
	exporter, err := clickhouse.CreateTraces(ctx, exportertest.NewNopSettings(clickhouse.Type()),
		to)
	if err != nil {
		return "", nil, err
	}
	at, err := child.Addresses(1)
	if err != nil {
		return "", nil, err
	}
	otlp := otlpreceiver.NewFactory()
	from := otlp.CreateDefaultConfig()
	err = confmap.NewFromStringMap(
		map[string]any{"protocols": map[string]any{
			"http": map[string]any{"endpoint": at[0]}}}).Unmarshal(from)
	if err != nil {
		return "", nil, err
	}
	receiver, err := otlp.CreateTraces(ctx, receivertest.NewNopSettings(otlp.Type()), from,
		exporter)
	if err != nil {
		return "", nil, err
	}
	stop = func(ctx context.Context) error {
		return errors.Join(receiver.Shutdown(ctx),
			exporter.Shutdown(ctx))
	}
	host := componenttest.NewNopHost()
	if err := errors.Join(exporter.Start(ctx, host), receiver.Start(ctx, host)); err != nil {
		return "", nil, errors.Join(err, stop(ctx))
	}
	return "http://" + at[0], stop, nil
}
