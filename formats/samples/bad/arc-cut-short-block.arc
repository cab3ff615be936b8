http://a.example/1 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain

x
http://a.example/2 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain