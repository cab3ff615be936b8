WARC/1.0
WARC-Type: warcinfo
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/warc-fields
Content-Length: 43

software: x
format: WARC File Format 1.0


WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 839

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"<http://a.example/>","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"200","Version":"HTTP/1.1","Reason":"OK"},"Headers":{"Content-Type":"text/html","location":"ignored"},"HTML-Metadata":{"Head":{"Base":"/base/","Title":"t","Link":[{"path":"A@/href","url":"not-a-link"}]},"Links":[{"path":"A@/href","url":"b.html","text":"caf\u00e9 \ud83d"},{},{"path":"IMG@/src","url":"i.png"},{"path":"AREA@/href","url":"../c?x=1#f","rel":"nofollow"},{"path":"STYLE/#text","href":"s.css"},{"path":"A@/href"},{"url":"http:\/\/d.example\/","path":"A@/href"},{"path":"LINK@/href","url":"l"},{"path":"FORM@/action","url":"f","method":"post"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 252

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"request","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 253

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"warcinfo","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 253

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"metadata","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 253

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"resource","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 255

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"conversion","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 257

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"continuation","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}

WARC/1.0
warc-TYPE: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
content-length: 382

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":301,"Version":"HTTP/1.1","Reason":"OK"},"Headers":{"LOCATION":"/new"},"HTML-Metadata":{"Links":null}}}}}





WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 373

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"302","Version":"HTTP/1.1","Reason":"OK"},"Headers":{"Location":["http://x.example/","/y"]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 404

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"revisit","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"200","Version":"HTTP/1.1","Reason":"OK"},"Headers":{},"HTML-Metadata":{"Head":{},"Links":[{"path":"A@/href","url":"old"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 225

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"revisit","WARC-Target-URI":"http://a.example/r","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x"}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 354

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"revisit","WARC-Target-URI":"http://a.example/","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"301","Version":"HTTP/1.1","Reason":"OK"},"Headers":{"Location":"/moved"}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 221

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"dns:a.example","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x"}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 341

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/i.png","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"200","Version":"HTTP/1.1","Reason":"OK"},"Headers":{}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 349

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/odd"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"abc","Version":"HTTP/1.1","Reason":"OK"},"HTML-Metadata":{"Links":{"path":"A@/href","url":"only"}}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 422

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/u","WARC-Date":"2016-01-11"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":" 200 ","Version":"HTTP/1.1","Reason":"OK"},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"half\ud83d"},{"path":"A@/href","url":"\ud83d\ude00"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 254

{"Container":{"Offset":"0"},"Envelope":{"Format":"ARC","ARC-Header-Metadata":{"Target-URI":"filedesc://x.arc","IP-Address":"1.2.3.4","Date":"20080430204825","Content-Type":"text/html","Content-Length":"9"},"Payload-Metadata":{"Actual-Content-Type":"x"}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/json
Content-Length: 426

{"Container":{"Offset":"0"},"Envelope":{"Format":"ARC","ARC-Header-Metadata":{"Target-URI":"http://a.example/arc","IP-Address":"1.2.3.4","Date":"20080430204825","Content-Type":"text/html","Content-Length":"9"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{"Response-Message":{"Status":"200","Version":"HTTP/1.1","Reason":"OK"},"Headers":{},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"z"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/warc-fields
Content-Length: 40

via: http://a.example/
outlink: x L a


WARC/1.0
WARC-Type: response
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Type: application/http
Content-Length: 0



WARC/1.0
WARC-Type: metadata
Content-Type: application/json
Content-Length: 555

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/head","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"x?a=1&amp;b=2&copy=3"},{"path":"A@/href","url":"y\u0022&quot;","rel":"ugc"}],"Head":{"Base":"/b&#x26;b/","Metas":[{"name":"robots","content":"noindex"},{"http-equiv":"Refresh","content":"0; URL=/next?p=1&amp;q=2"},{"HTTP-EQUIV":"refresh","content":"5"},{"content":"0;url=none"}]}}}}}}

WARC/1.0
WARC-Type: metadata
Content-Type: application/json
Content-Length: 274

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/robots"},"Payload-Metadata":{"HTTP-Response-Metadata":{"HTML-Metadata":{"Head":{"Metas":{"name":"ROBOTS","content":"noindex, nofollow"}},"Links":{"path":"A@/href","url":"z"}}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://ignored.example/
WARC-Date: 2026-01-01T00:00:00Z
Content-Length: 257

{"Container":{"Offset":"0"},"Envelope":{"Format":"WARC","WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/last","WARC-Date":"2024-05-01T12:30:45Z"},"Payload-Metadata":{"Actual-Content-Type":"x","HTTP-Response-Metadata":{}}}}