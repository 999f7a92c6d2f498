// Package s3store keeps leases of nodes in a bucket of Amazon S3 or a compatible server, for a
// fleet. Importing it registers s3://, for example in TRACEFLAKE_STORE:
//
//	s3://bucket/prefix?region=REGION&endpoint=URL
//
// The prefix may have several parts; the default is traceflake/leases/. Credentials are those that
// AWS's SDK finds. For other settings pass an aws.Config to [New].
//
// The server must honour If-Match and If-None-Match in PutObject, even for simultaneous writes, and
// acknowledge only durable writes. Create tests whether the server honours conditions, and fails if
// it does not. The store's clock is the Date of responses.
//
// README.md lists servers and rights, and what happens after restores and copies.
package s3store
