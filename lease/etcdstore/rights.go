package etcdstore

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// CheckRights writes nothing; see [driver.Objects]. etcd checks the user's rights and its quota for
// a whole transaction, even for a branch that is not executed. This one never is, since no key has
// a negative revision.
func (s *objects) CheckRights(ctx context.Context) error {
	kv, err := s.kv(ctx)
	if err == nil {
		key := s.prefix + "config"
		_, err = kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", -1)).Then(
			clientv3.OpPut(key, "")).Commit()
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}
