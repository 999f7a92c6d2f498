package cli

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
)

// spans checks the tables of spans.
func (d *doctor) spans() {
	err := d.clickhouse.with(func(db *sql.DB) error {
		version, err := within(d.cmd.Context(),
			func(ctx context.Context) (version string, err error) {
				err = db.QueryRowContext(ctx, "SELECT version()").Scan(&version)
				return version, err
			})
		if err != nil {
			return err
		}
		d.ok("ClickHouse", "version %s", version)
		status, err := within(d.cmd.Context(),
			func(ctx context.Context) (clickhouse.Status, error) {
				return clickhouse.Adoption{}.Status(ctx, db)
			})
		if err != nil {
			return err
		}
		own, err := within(d.cmd.Context(), func(ctx context.Context) (clickhouse.Schema, error) {
			return clickhouse.Schema{}.Detect(ctx, db)
		})
		if err != nil {
			return err
		}
		for _, t := range status.Tables {
			d.table(t)
		}
		dear, err := within(d.cmd.Context(), func(ctx context.Context) (dear bool, err error) {
			err = db.QueryRowContext(ctx, "SELECT getSetting('"+clickhouse.LookupSetting+
				"')").Scan(&dear)
			return dear, err
		})
		if err != nil {
			return err
		}
		if dear {
			d.ok("lookups", "complete, but dearer than needed for users like this one: %s",
				clickhouse.LookupAdvice)
		}
		d.adoption(status, !own.Overlay)
		return nil
	})
	if err != nil {
		d.failed("ClickHouse", err)
	}
}

func (d *doctor) table(t clickhouse.TableStatus) {
	kept, ordered := "kept forever", "no spans"
	if t.TTL != "" {
		kept = "TTL " + t.TTL
	}
	if t.Sampled > 0 {
		ordered = fmt.Sprintf("%.0f %% of the newest IDs are ordered", 100*t.Ordered)
	}
	d.ok("table", "%s, %s, %s, %s", t.Table, t.Engine, kept, ordered)
}

// adoption checks that an adoption has not stopped halfway, and that tools find their view.
func (d *doctor) adoption(s clickhouse.Status, own bool) {
	first := s.Tables[0]
	if s.Problem != nil && s.Phase > clickhouse.NotBegun && s.Phase < clickhouse.Finished {
		d.failed("adoption", s.Problem)
	}
	lookup := func(view string) bool { return strings.Contains(view, "_trace_id_ts") }
	switch s.Phase {
	case clickhouse.Preparing, clickhouse.Prepared, clickhouse.Finishing:
		d.wrong("adoption", "traceflake clickhouse: "+s.Phase.Next(), "that of %s is %s",
			first.Table, s.Phase)
	case clickhouse.Swapped:
		d.ok("adoption",
			"swapped; `traceflake clickhouse adopt finish` ends it when the old table is empty")
	default:
		if own && !slices.ContainsFunc(first.Views, lookup) {
			d.wrong("views", "traceflake clickhouse create, which creates what is missing and "+
				"changes nothing else",
				"no view with the name of the exporter's lookup table reads %s: tools do not "+
					"find traces by ID", first.Table)
		}
	}
}
