WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 253

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 253

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x",