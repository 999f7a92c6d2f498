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
	case limit < 1 || limit > maxLimit:
		return Query{}, errorf("limit %d: it is 1 to %d, or 0 for 20", q.Limit,
			maxLimit)
	case q.MinDuration < 0 || q.MaxDuration < 0:
		return Query{}, errorf("durations %v to %v: they are not negative",
			q.MinDuration, q.MaxDuration)
	case q.MaxDuration > 0 && q.MaxDuration < q.MinDuration:
		return Query{}, errorf("durations %v to %v: the longest is shorter than "+
			"the shortest", q.MinDuration, q.MaxDuration)
	}

	where := []string{"Timestamp >= {from:DateTime64(9, 'UTC')} AND " +
		"Timestamp < {to:DateTime64(9, 'UTC')}"}
	and := func(wanted bool, condition string, values ...Param) {
		if wanted {
			where = append(where, condition)
			params = append(params, values...)
		}
	}
	and(q.Service != "", "ServiceName = {service:String}", Param{"service", q.Service})
	and(q.Name != "", "SpanName = {name:String}", Param{"name", q.Name})
	and(q.MinDuration > 0, "Duration >= {min_duration:UInt64}",
		Param{"min_duration", strconv.FormatInt(int64(q.MinDuration), 10)})
	and(q.MaxDuration > 0, "Duration <= {max_duration:UInt64}",
		Param{"max_duration", strconv.FormatInt(int64(q.MaxDuration), 10)})
	and(q.Errors, "StatusCode IN ('STATUS_CODE_ERROR', 'Error')")
	attributes := func(column, prefix string, values map[string]string) {
		for i, key := range slices.Sorted(maps.Keys(values)) {
			k, v := fmt.Sprint(prefix, "_key", i), fmt.Sprint(prefix, "_value", i)
			and(true, fmt.Sprintf("mapContains(%[1]s, {%[2]s:String}) AND "+
				"%[1]s[{%[2]s:String}] = {%[3]s:String}", column, k, v),
				Param{k, key}, Param{v, values[key]})
		}
	}
	attributes("SpanAttributes", "span", q.Attributes)
	attributes("ResourceAttributes", "resource", q.ResourceAttributes)

	return Query{
		SQL: s.render("search", "{where}", strings.Join(where, "\n    AND "),
			"{limit}", strconv.Itoa(limit)),
		Params: params,
	}, nil
}
