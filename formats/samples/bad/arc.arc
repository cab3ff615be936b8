no record
URL 1.2.3.4 20240501123045 text/html 3
http://a.example/1 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain

x
http://a.example/minus 1.2.3.4 20240501123045 text/html -1
HTTP/1.0 200 OK

<p>

http://a.example/2 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain

x
http://a.example/word 1.2.3.4 20240501123045 text/html many
http://a.example/3 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain

x
http://a.example/short 1.2.3.4 20240501123045 text/html 15
HTTP/1.0 200 OK

<p>

http://a.example/4 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain

x
http://a.example/month 1.2.3.4 20241301123045 text/html 19
HTTP/1.1 200 OK


http://a.example/long 1.2.3.4 201404010000000000 text/html 19
HTTP/1.1 200 OK


http://a.example/5 1.2.3.4 20240501123045 text/plain 46
HTTP/1.1 200 OK
Content-Type: text/plain

x
