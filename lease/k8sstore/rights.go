package k8sstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// CheckRights queries the API server, which every account may do; see [driver.Objects].
func (o *objects) CheckRights(ctx context.Context) error {
	var missing []string
	for _, verb := range []string{"get", "list", "update"} {
		attributes := map[string]string{"namespace": o.namespace, "verb": verb,
			"group": "coordination.k8s.io", "resource": "leases"}
		body, err := json.Marshal(map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": map[string]any{"resourceAttributes": attributes},
		})
		if err != nil {
			return err
		}
		var review struct {
			Kind   string
			Status struct{ Allowed bool }
		}
		r := request{verb: "review", method: http.MethodPost,
			path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: body}
		_, err = o.do(ctx, r, &review)
		if s, ok := errors.AsType[*status](err); ok &&
			(s.Code == http.StatusForbidden || s.Code == http.StatusNotFound) {
			return driver.ErrRightsUnknown // a server without access reviews
		}
		if err != nil {
			return o.failed(r, err)
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf(
			"%w: the client's Role needs %s of leases.coordination.k8s.io in namespace %q",
			lease.ErrMisconfigured, strings.Join(missing, ", "), o.namespace)
	}
	return nil
}
