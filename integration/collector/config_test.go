// Package collector tests the configurations in examples/collector: it parses both with the
// Collector's own code, and sends spans of the SDKs for Go and JavaScript through its ClickHouse
// exporter into the tables.
package collector

import (
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

// examples is the folder of the configurations.
const examples = "../../examples/collector/"

// exporterConfig reads a configuration as the Collector does, and returns the exporter's part.
func exporterConfig(t *testing.T, file string) *clickhouseexporter.Config {
	t.Helper()
	otlp, batch, clickhouse := otlpreceiver.NewFactory(), batchprocessor.NewFactory(), clickhouseexporter.NewFactory()
	provider, err := otelcol.NewConfigProvider(otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
		URIs:              []string{"file:" + file},
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	config, err := provider.Get(t.Context(), otelcol.Factories{
		Receivers:  map[component.Type]receiver.Factory{otlp.Type(): otlp},
		Processors: map[component.Type]processor.Factory{batch.Type(): batch},
		Exporters:  map[component.Type]exporter.Factory{clickhouse.Type(): clickhouse},
		Telemetry:  telemetry.NewFactory(func() component.Config { return &struct{}{} }),
	})
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	part, ok := config.Exporters[component.MustNewID("clickhouse")].(*clickhouseexporter.Config)
	if !ok {
		t.Fatalf("%s has no clickhouse exporter", file)
	}
	return part
}

func TestConfigurationsParse(t *testing.T) {
	t.Setenv("CLICKHOUSE_ENDPOINT", "http://u:p@127.0.0.1:8123")
	t.Setenv("CLICKHOUSE_DATABASE", "otel")
	owned, overlay := exporterConfig(t, examples+"owned.yaml"), exporterConfig(t, examples+"overlay.yaml")
	if owned.CreateSchema || !overlay.CreateSchema {
		t.Error("create_schema must be false for the owned table and true for the exporter's")
	}
	if owned.Database != "otel" || owned.TracesTableName != "otel_traces" || overlay.TTL.Hours() != 720 {
		t.Errorf("%+v, %+v", owned, overlay)
	}
}
