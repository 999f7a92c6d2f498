package fleet_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/sparx64"
	"github.com/traceflake/traceflake/traceid"
)

// No method of a zero value panics, and none waits. sparx64's methods get a block, since they panic
// without a block, as those of crypto/cipher do.
func TestZeroValues(t *testing.T) {
	reportstest.Collect(t)
	values := []any{
		new(sparx64.Cipher),
		new(randflake.Codec), new(randflake.Generator), new(randflake.ID), new(randflake.Keyring),
		new(idgen.Generator), new(traceid.Verifier), new(fleet.IDs), new(fleet.Config),
		new(lease.Keeper), new(memstore.Objects), new(lease.Grant), new(lease.Description),
		new(driver.TryAgain),
		new(clickhouse.Schema), new(clickhouse.Query), new(clickhouse.Plan),
		new(clickhouse.Adoption),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	arguments := map[reflect.Type]reflect.Value{
		reflect.TypeFor[context.Context](): reflect.ValueOf(ctx),
	}
	for _, v := range []any{sql.OpenDB(noServer{}), make([]byte, sparx64.BlockSize),
		make([]uint64, 1), make([]randflake.ID, 3)} {
		arguments[reflect.TypeOf(v)] = reflect.ValueOf(v)
	}
	for _, v := range values {
		typ := reflect.TypeOf(v)
		for i := range typ.NumMethod() {
			method := typ.Method(i)
			if method.Name == "Format" { // fmt calls it
				_ = fmt.Sprint(v)
				continue
			}
			args := []reflect.Value{reflect.New(typ.Elem())}
			in := method.Type.NumIn()
			if method.Type.IsVariadic() {
				in--
			}
			for j := 1; j < in; j++ {
				arg, ok := arguments[method.Type.In(j)]
				if !ok {
					arg = reflect.Zero(method.Type.In(j))
				}
				args = append(args, arg)
			}
			func() {
				defer func() {
					if problem := recover(); problem != nil {
						t.Errorf("%s.%s panics: %v", typ, method.Name, problem)
					}
				}()
				method.Func.Call(args)
			}()
			if ctx.Err() != nil {
				t.Fatalf("%s.%s waits", typ, method.Name)
			}
		}
	}
}

// noServer is a database that cannot be reached.
type noServer struct{}

func (noServer) Connect(context.Context) (sqldriver.Conn, error) { return nil, answers["away"].err }
func (noServer) Driver() sqldriver.Driver                        { return nil }
