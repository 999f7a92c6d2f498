// Package s3store keeps leases of nodes in a bucket of Amazon S3, or of another
// server that speaks its protocol, for a fleet: a
// [github.com/traceflake/traceflake/lease.Store].
//
// # What it needs
//
// A server whose PutObject honours If-Match and If-None-Match, also among writes
// that arrive at once, and that acknowledges only what is durable:
//
//	Amazon S3            yes
//	Cloudflare R2        yes, by its documentation
//	Versity's gateway    1.8.0 or newer; 1.6.0 and 1.7.0 check If-Match before they take the
//	                     body, and take several of the writes that arrive at once
//	SeaweedFS            newer than 4.16, which has the same fault (its issue 8800)
//	MinIO                yes, by its documentation
//	Google Cloud Storage no: its XML API ignores both headers
//	Garage               no
//
// The tests of this package run on Versity's gateway 1.8.0.
//
// A server that takes two writes which require the same version grants leases
// twice. So Create tries the server out, with some 55 requests to the object probe: of eight
// writes at once that require the same version exactly one must be taken, five times, with half of
// each body held back until all have arrived; and writes that require an old version, or no object,
// must be refused. Otherwise Create returns an error, which says what was tried and what came back.
// The headers are also signed: a proxy that drops them breaks the signature. Versity's gateway 1.6.0
// was refused in 200 of 200 tries. A server whose fault shows more rarely passes, so use the versions
// above.
//
// No probe can tell whether an acknowledged write survives a power failure. Ask
// for it: the posix backend of Versity's gateway, for one, does not sync files, so
// it needs a file system that does (ZFS with sync=always, or a mount option such
// as sync), or disks that lose nothing.
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
// Without s3:ListBucket, S3 answers 403 for an object that does not exist. With
// encryption by a key of KMS the processes also need kms:GenerateDataKey and
// kms:Decrypt.
//
// Other programs may write to the bucket too. On Amazon S3 a bucket policy can
// refuse every write below the prefix that has no condition, and every
// deletion:
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
//	s3://bucket/prefix?region=REGION&endpoint=URL&style=path
//
// The prefix may have several parts; the default is [DefaultPrefix]. The
// parameters are
//
//	region    the bucket's region; default: AWS_REGION, or the profile's; with
//	          an endpoint: us-east-1
//	endpoint  the URL of a server other than Amazon's; default:
//	          AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL
//	style     path or host: where URLs have the bucket's name; default: path
//	          with an endpoint or a dot in the bucket's name, and else host
//
// Any other parameter is an error. A URL has no keys: credentials are those
// that AWS's SDK finds, in the environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), in a profile, from a web identity
// token (EKS), a container (ECS, EKS Pod Identity) or an instance (EC2). They
// are renewed when they expire. For other settings pass an aws.Config to [New].
//
// Requests are those of net/http, signed by the SDK's signer. The SDK's package
// config is linked for the credentials; with it they are 14 modules, all of
// AWS. Its client of S3 is not: it repeats writes whose outcome is unknown.
//
// # The objects
//
// Below the prefix, traceflake/leases/ unless [WithPrefix] gives another:
//
//	config     the description of the store
//	page-0000  64 blocks, as package driver/pages describes them
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
// A renewal is a GET and a PUT, and so is an Acquire whose first page has a
// free block, which nearly all have until most blocks are taken. If another
// process writes the same page at this moment, both are repeated. A process
// starts with one GET more, for the description. So
// 10000 processes that renew every 5 minutes make 67 requests a second, which
// is 86.4 million GETs and as many PUTs in 30 days: at 0.4 and 5 dollars a
// million (S3 Standard in us-east-1, an assumption of November 2026) 470
// dollars a month, and 5 cents for each process. The tests count the requests.
//
// By its documentation R2 takes one write of an object a second: enough for
// 10000 processes that renew, 0.13 a second for each page, but not for more
// than 256 that start within a second; those wait.
//
// A server that limits requests with 429 or SlowDown is asked again, after
// random times that grow to 8 seconds, within the context of the call. Other
// errors are returned at once; no write whose outcome is unknown is repeated.
//
// The SHA-256 of each body is signed, so a server that verifies signatures refuses a body that was
// changed on the way. A gateway that signs requests itself could change one: if the response to a
// write has a CRC-64/NVME, as that of Amazon S3 has, which computes one for each object, it is compared
// with what was sent, and the ETag must be a new one. A mismatch is an error of the call. The ETag's
// value is not compared: it is the MD5 of the object only with some kinds of encryption. No checksum
// is requested: some servers refuse such requests.
//
// # Durability
//
// S3 is linearizable for each object, and acknowledges what is durable. So do
// not put anything between processes and the bucket that is not: no cache, no
// replica. Processes of one fleet use one bucket in one region; the copy of a
// replication rule is stale. Grants are forgotten after
//
//   - a lifecycle rule or a person deletes or replaces objects below the prefix;
//   - an older version of an object is restored;
//   - a failover to a replica of the bucket.
//
// In each case call Raise before any process uses the bucket.
// Versioning of the bucket is no harm, but keeps every page that was ever
// written: let a lifecycle rule expire noncurrent versions, and nothing else,
// below the prefix.
//
// # Clocks
//
// The store's clock is the Date of responses: a client that is ahead of it by
// more than a minute is refused with
// [github.com/traceflake/traceflake/lease.ErrClockAhead]. S3 itself
// refuses signatures that are 15 minutes off.
//
// Tests that stop and kill a real server, and change its rights, are in integration/lease/s3store.
package s3store
