package clickhouse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Search has the conditions of a search for spans. Empty fields match any span.
type Search struct {
	From, To                 time.Time // when the span began: [From, To), required
	Service, Name            string
	Attributes               map[string]string // of the span, each present and equal
	ResourceAttributes       map[string]string
	MinDuration, MaxDuration time.Duration // inclusive
	Errors                   bool          // only spans with the status Error
	Limit                    int           // spans of a page, 1 to 10000; 0 is 20
}

// Search returns the query for the newest spans that match, newest first: Timestamp, TraceId,
// ServiceName, SpanName, SpanKind, Duration in nanoseconds, StatusCode; for all columns see
// [Schema.Trace]. For the next page set To to the last Timestamp: all spans of exactly that time
// are on the previous page, even beyond its limit.
//
// With a service the query reads the spans of that service within the time range. With attributes,
// bloom filters exclude granules without such values.
func (s Schema) Search(q Search) (Query, error) {
	params, err := s.between(q.From, q.To)
	if err != nil {
		return Query{}, err
	}
	limit := cmp.Or(q.Limit, 20)
	switch {
	case limit < 1 || limit > 10_000:
		return Query{}, fmt.Errorf("clickhouse: limit %d: it is 1 to 10000, or 0 for 20", q.Limit)
	case q.MinDuration < 0 || q.MaxDuration < 0:
		return Query{},
			fmt.Errorf("clickhouse: durations %v to %v: they are not negative", q.MinDuration,
				q.MaxDuration)
	case q.MaxDuration > 0 && q.MaxDuration < q.MinDuration:
		return Query{},
			fmt.Errorf("clickhouse: durations %v to %v: the longest is shorter than the shortest",
				q.MinDuration, q.MaxDuration)
	}

	var where []string
	and := func(condition, name, value string) {
		where = append(where, condition)
		params = append(params, Param{name, value})
	}
	if q.Service != "" {
		and("ServiceName = {service:String}", "service", q.Service)
	}
	if q.Name != "" {
		and("SpanName = {name:String}", "name", q.Name)
	}
	where = append(where, "Timestamp >= {from:"+instant+"} AND Timestamp < {to:"+instant+"}")
	if q.MinDuration > 0 {
		and("Duration >= {min_duration:UInt64}", "min_duration",
			strconv.FormatInt(int64(q.MinDuration), 10))
	}
	if q.MaxDuration > 0 {
		and("Duration <= {max_duration:UInt64}", "max_duration",
			strconv.FormatInt(int64(q.MaxDuration), 10))
	}
	if q.Errors {
		where = append(where, "StatusCode IN ('STATUS_CODE_ERROR', 'Error')")
	}
	attributes := func(column, prefix string, wanted map[string]string) {
		for i, key := range slices.Sorted(maps.Keys(wanted)) {
			k, v := prefix+"_key"+strconv.Itoa(i), prefix+"_value"+strconv.Itoa(i)
			and(fmt.Sprintf("mapContains(%s, {%s:String}) AND %s[{%s:String}] = {%s:String}",
				column, k, column, k, v), k, key)
			params = append(params, Param{v, wanted[key]})
		}
	}
	attributes("SpanAttributes", "span", q.Attributes)
	attributes("ResourceAttributes", "resource", q.ResourceAttributes)

	return Query{
		SQL: fmt.Sprintf("SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, "+
			"StatusCode\nFROM %s\nWHERE %s\nORDER BY Timestamp DESC LIMIT %d WITH TIES",
			s.quoted(s.named().spans), strings.Join(where, "\n    AND "), limit),
		Params: params,
	}, nil
}
