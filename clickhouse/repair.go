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
func (s Schema) repairs(t table) (steps []Step) {
	for _, g := range s.missingParts(t) {
		steps = append(steps, Step{Does: t.Name + " has the " + g.what,
			SQL: []string{s.alter(t.Name) + g.change}})
	}
	return steps
}

// gap is a part that a table lacks, and the change of ALTER TABLE that adds it.
type gap struct{ what, change string }

// missingParts returns what an existing table lacks: columns of the exporter, our indexes, small
// compressed blocks, and the projection that the schema names.
func (s Schema) missingParts(t table) (all []gap) {
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
	element := s.Projection.element()
	name, _, _ := strings.Cut(element, " ")
	add := "ADD PROJECTION IF NOT EXISTS " + element + ", MATERIALIZE PROJECTION " + name
	switch {
	case s.Projection == "", s.Projection == NoProjection:
	case !strings.Contains(t.Definition, "PROJECTION "+name+" "):
		all = append(all, gap{"projection " + name, add})
	case s.Projection == Charts && t.olderCharts():
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

// rebuild returns a note on an older projection for charts, which takes long to build again.
func (s Schema) rebuild(t table) []string {
	if s.Projection != "" || !t.olderCharts() {
		return nil
	}
	return []string{"the projection charts of " + t.Name + " has no _part_offset, so searches " +
		"for rare spans of a service read more than they could:\n" +
		"`create --projection charts` builds it again for all stored spans"}
}

// conflict returns what prevents a table from becoming one of the layout, or "".
func (t table) conflict() string {
	switch {
	case !t.mergeTree():
		return "is a " + t.Engine + ", not a table of spans"
	case !t.ours():
		return "has another shape"
	}
	for _, c := range columns {
		if have := t.column(c.name).Type; have != "" && have != c.typ {
			return "has another shape: " + c.name + " has the type " + have + ", not " + c.typ
		}
	}
	return ""
}
