WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 254

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/1","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

junk before a record
and more
WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 254

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/2","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata

{"Envelope":{}}

WARC/1.0
no colon here
Content-Length: 2

{}

WARC/1.0
Content-Length: 2
Content-Length: 2

{}

WARC/1.0
Content-Length: two

{}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 12

{"Envelope":

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 2

{}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 2

[]

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 15

{"Envelope":{}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 14

{"Envelope":3}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 230

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 253

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":[]}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 282

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"HTML-Metadata":{"Links":[3]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 282

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"HTML-Metadata":{"Links":"x"}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 285

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Headers":{"Location":{"a":"b"}}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 5

{} {}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 0



WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 246

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 680

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 262

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/swallowed","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 215

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 236

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 238

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"<>","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 238

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"May 1"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 283

{"Container":{"Offset":"0"},"Envelope":{"Format":"ARC","ARC-Header-Metadata":{"Target-URI":"http://a.example/","IP-Address":"1.2.3.4","Date":"20081330204825","Content-Type":"text/html","Content-Length":"9"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 254

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/ÿ","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 254

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/3","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

