package clickhouse

import (
	"regexp"
	"strings"
)

// indexes are the definitions of the table's indexes, by name.
var indexes = regexp.MustCompile(`(?m)^    INDEX (\w+) (.*? GRANULARITY \d+)`).
	FindAllStringSubmatch(template("spans"), -1)

// repairs returns the steps that add what an existing table lacks. Existing parts get it in the
// background.
func (o *adoption) repairs() (steps []Step) {
	for _, g := range o.missingParts() {
		steps = append(steps, Step{Does: o.live.Name + " has the " + g.what,
			SQL: []string{o.alter(o.live.Name) + g.change}})
	}
	return steps
}

// gap is a part that a table lacks, and the change of ALTER TABLE that adds it.
type gap struct{ what, change string }

// missingParts returns what an existing table lacks: columns of the exporter, our indexes, small
// compressed blocks, and the projection that the schema names.
func (o *adoption) missingParts() (all []gap) {
	t := o.live
	if !t.exists() {
		return nil
	}
	for _, c := range columns {
		if t.column(c.name).Name == "" {
			all = append(all, gap{"column " + c.name,
				"ADD COLUMN IF NOT EXISTS " + strings.TrimSpace(c.definition)})
		}
	}
	for _, m := range indexes {
		name, definition := m[1], m[2]
		if !strings.Contains(t.Definition, "INDEX "+name+" ") {
			all = append(all, gap{"index " + name, "ADD INDEX IF NOT EXISTS " + name + " " +
				definition + ", MATERIALIZE INDEX " + name})
		}
	}
	if size := blockSize.FindString(settings); !strings.Contains(t.settings(), smallBlocks) {
		all = append(all, gap{"setting " + size + ", which parts take over as they merge",
			"MODIFY SETTING " + size})
	}
	element := o.Projection.element()
	name, _, _ := strings.Cut(element, " ")
	add := "ADD PROJECTION IF NOT EXISTS " + element + ", MATERIALIZE PROJECTION " + name
	switch {
	case o.Projection == "", o.Projection == NoProjection:
	case !strings.Contains(t.Definition, "PROJECTION "+name+" "):
		all = append(all, gap{"projection " + name, add})
	case o.Projection == Charts && t.olderCharts():
		// With ADD alone, old and new parts would not merge until MATERIALIZE.
		all = append(all, gap{"projection charts with _part_offset",
			"DROP PROJECTION IF EXISTS charts, " + add})
	}
	return all
}

var blockSize = regexp.MustCompile(smallBlocks + `\d+`)

// olderCharts reports whether the table has the projection for charts as it was without
// _part_offset.
func (t table) olderCharts() bool {
	return strings.Contains(t.Definition, strings.Replace(Charts.shown(), ", _part_offset", "", 1))
}
