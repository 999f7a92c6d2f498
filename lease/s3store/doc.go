// Package s3store keeps leases of nodes in a bucket of Amazon S3, or of another server that
// speaks its protocol, for a fleet: a [github.com/traceflake/traceflake/lease.Store].
//
// # What it needs
//
// A server whose PutObject honours If-Match and If-None-Match, also among writes
// that arrive at once, and that acknowledges only what is durable:
//
//	Amazon S3            yes
//	Cloudflare R2        yes, by its documentation; one write of an object a second
//	Versity's gateway    1.8.0 or newer; older ones check If-Match before they take the body
//	SeaweedFS            newer than 4.16, which has the same fault (its issue 8800)
//	MinIO                yes, by its documentation
//	Google Cloud Storage no: its XML API ignores both headers
//	Garage               no
//
// The tests of this package run on Versity's gateway 1.8.0.
//
// A server that takes two writes which require the same version grants leases twice. So Create
// tests the server, with some 55 requests to the object probe, and returns an error if it takes
// more than one of eight such writes at once, each sent in two halves. It refused Versity's gateway
// 1.6.0 in 200 of 200 tries; a fault that shows more rarely passes, so use the versions above. No
// probe can tell whether an acknowledged write survives a power failure: the posix backend of
// Versity's gateway, for one, does not sync files.
//
// On the bucket and on the objects below the prefix the store needs these
// rights, and none to delete:
//
//	{"Version": "2012-10-17", "Statement": [
//	  {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"],
//	   "Resource": "arn:aws:s3:::BUCKET/PREFIX/*"},
//	  {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::BUCKET"}
//	]}
//
// Without s3:ListBucket, S3 responds with 403 to a request for an object that does not exist. With
// encryption by a key of KMS the processes also need kms:GenerateDataKey and kms:Decrypt.
//
// If other programs write to the bucket too, a bucket policy of Amazon S3 can
// refuse every write below the prefix that has no condition, and every deletion:
//
//	{"Version": "2012-10-17", "Statement": [
//	  {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject",
//	   "Resource": "arn:aws:s3:::BUCKET/PREFIX/*",
//	   "Condition": {"Null": {"s3:if-match": "true", "s3:if-none-match": "true"}}},
//	  {"Effect": "Deny", "Principal": "*", "Action": ["s3:DeleteObject", "s3:DeleteObjectVersion"],
//	   "Resource": "arn:aws:s3:::BUCKET/PREFIX/*"}
//	]}
//
// # By URL
//
// Importing the package registers it for URLs, for example in TRACEFLAKE_STORE:
//
//	s3://bucket/prefix?region=REGION&endpoint=URL
//
// The prefix may have several parts; the default is [DefaultPrefix]. The parameters are
//
//	region    the bucket's region; default: AWS_REGION, or the profile's; with
//	          an endpoint: us-east-1
//	endpoint  the URL of a server other than Amazon's, whose requests have the bucket's
//	          name in the path; default: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL
//
// Any other parameter is an error. Credentials are those that AWS's SDK finds, in the environment
// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), in a profile, from a web identity
// token (EKS), a container (ECS, EKS Pod Identity) or an instance (EC2). They
// are renewed when they expire. For other settings pass an aws.Config to [New].
//
// # The objects
//
//	config     the description of the store
//	page-0000  64 blocks, as package driver describes them
//	probe      what the probe wrote last
//
// All of them are created with the store. With blocks of 8 nodes there are 256 pages, of about
// 12 kB when all their blocks are taken. An object that is gone is never created again, and one
// that somebody edited is refused, by its checksum. Reading is harmless:
//
//	aws s3 cp s3://BUCKET/PREFIX/page-0000 -
//
// # Requests
//
// A start is a GET, a renewal a GET and a PUT, and so is an Acquire whose first page has a free
// block, which nearly all have until most blocks are taken. If another process writes the same
// page at this moment, both are repeated. docs/operating.md has what a fleet costs.
//
// A server that limits requests with 429 or SlowDown is asked again, within the context of the call.
// Other errors are returned at once; no write whose outcome is unknown is repeated.
//
// The SHA-256 of each body is signed. If the response to a write has a CRC-64/NVME, as that of Amazon
// S3 has, it is compared with what was sent, and the ETag must be a new one; otherwise the call returns
// an error.
//
// # Durability
//
// S3 is linearizable for each object, and acknowledges what is durable. So do
// not put a cache or a replica between processes and the bucket. Processes of one fleet use one bucket in
// one region. Grants are forgotten after
//
//   - a lifecycle rule or a person deletes or replaces objects below the prefix;
//   - an older version of an object is restored;
//   - a failover to a replica of the bucket.
//
// In each case call Raise before any process uses the bucket. Versioning of the bucket keeps every page
// that was ever written: let a lifecycle rule expire noncurrent versions, and nothing else, below the
// prefix.
//
// # Clocks
//
// The store's clock is the Date of responses: a client that is ahead of it by more than a minute
// is refused with [github.com/traceflake/traceflake/lease.ErrClockAhead]. S3 itself refuses
// signatures that are 15 minutes off.
package s3store
