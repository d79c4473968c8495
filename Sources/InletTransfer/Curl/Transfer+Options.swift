import CCurl
import InletCore
import InletLinux
package import SystemPackage

/// Which servers to trust: those with a certificate of the system's authorities, or also of `caFile` (PEM).
///
/// With a `pin` the server's public key must be the pinned one. Without a `caFile` only the key is checked, neither the
/// certificate's authority nor its name and dates: the key proves more, and a self-signed certificate rarely has the
/// right name. With both, both are checked.
package struct Trust: Sendable, Hashable {
    package var caFile: FilePath?
    package var pin: PublicKeyPin?

    package init(caFile: FilePath? = nil, pin: PublicKeyPin? = nil) {
        self.caFile = caFile
        self.pin = pin
    }

    package static let system = Trust()
}

/// Options shared by every request of a client.
struct ClientOptions: Sendable {
    var trust: Trust
    var userAgent: String
    /// Answers instead of DNS, as `CURLOPT_RESOLVE` takes them; for tests.
    var names: [String] = []
}

extension CurlHandle {
    /// `CURLOPT_CAINFO` takes one file, so `ca_file` replaces the system's bundle; the system's hashed directory of the
    /// same certificates is named beside it.
    func trust(_ trust: Trust) {
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_SSL_VERIFYPEER, true)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        if let pin = trust.pin {
            set(CURLOPT_PINNEDPUBLICKEY, pin.text)
            if trust.caFile == nil { leaveCertificateUnchecked() }
        }
        guard let caFile = trust.caFile else { return }
        caFile.withPlatformString { set(CURLOPT_CAINFO, path: $0) }
        set(CURLOPT_CAPATH, "/etc/ssl/certs")
    }

    func leaveCertificateUnchecked() {
        set(CURLOPT_SSL_VERIFYPEER, false)
        set(CURLOPT_SSL_VERIFYHOST, 0)
    }
}

extension Transfer {
    /// For an answer that goes to a file: fewer, larger writes.
    private static let downloadBuffer = 256 * 1024
    private static let answerBuffer = 4 * 1024

    /// Sets every option of the request. `easy.setUp` holds the first refusal.
    func configure(_ options: ClientOptions) {
        let shape = RequestShape(submission, inlineBody: inlineBody)
        if shape != nil, easy.shape == shape {
            setCallbacks()
            easy.set(CURLOPT_URL, request.url.text)
            setInlineBody()
            return setFields()
        }
        if easy.shape != nil { easy.reset() }
        easy.shape = shape
        setCallbacks()
        setTarget()
        setAddressGuard()
        setProxy(options.trust)
        request.readsCertificate ? setCertificateReading() : easy.trust(options.trust)
        setMethodAndBody()
        // A request without a body cannot refuse to rewind (`rewind`): only on a new connection does curl certainly
        // send it once.
        easy.set(CURLOPT_FRESH_CONNECT, !request.isRepeatable && request.body.length == 0)
        setFields()
        easy.set(CURLOPT_USERAGENT, options.userAgent)
        if !options.names.isEmpty { easy.resolve(options.names) }
        easy.set(CURLOPT_NOSIGNAL, true)
        // A connection is kept for the next file until it has been idle for 118 s, libcurl's limit.
        if submission.sink != nil { easy.set(CURLOPT_BUFFERSIZE, Self.downloadBuffer) }
        // Hundreds of small uploads may be under way: their answers are a few fields.
        if easy.shape != nil { easy.set(CURLOPT_BUFFERSIZE, Self.answerBuffer) }
        // Each body has its own connection, and so its own window. HTTP/2 puts all on one socket and copies them into
        // frames. To nginx over TLS, 8 MiB bodies took 1.5 times the CPU and a sixth more time; 16 KiB bodies took the
        // same.
        easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        easy.set(CURLOPT_FOLLOWLOCATION, false)
        easy.set(CURLOPT_TCP_NODELAY, true)
        easy.set(CURLOPT_TCP_KEEPALIVE, true)
        let connect = max(1, request.connectTimeout.milliseconds)
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, Int(connect))
        easy.note(inlet_curl_leave_resolver(easy.handle))
    }

    /// Lets a new connection resume a session, which saves a round trip and the server's signature. A certificate to be
    /// read appears only in a full handshake.
    func shareSessions(of multi: CurlMulti) {
        if request.url.scheme == "https", !request.readsCertificate { easy.shareSessions(of: multi) }
    }

    private func setTarget() {
        easy.note(inlet_curl_allow_http_only(easy.handle))
        easy.set(CURLOPT_PATH_AS_IS, true)
        easy.set(CURLOPT_URL, request.url.text)
        request.unixSocket?.withPlatformString { easy.set(CURLOPT_UNIX_SOCKET_PATH, path: $0) }
    }

    /// Ends once TLS is established: no request, and so no secret, goes to the peer.
    private func setCertificateReading() {
        easy.set(CURLOPT_CONNECT_ONLY, true)
        easy.set(CURLOPT_CERTINFO, true)
        easy.noteVersion()
        easy.leaveCertificateUnchecked()
    }

    private func setMethodAndBody() {
        if inlineBody != nil {
            setInlineBody()
        } else if request.hasBody {
            let length = request.body.length
            easy.set(CURLOPT_INFILESIZE_LARGE, offset: length)
            buffer = UploadBuffers.shared.take(for: length)
            easy.set(CURLOPT_UPLOAD_BUFFERSIZE, buffer)
        } else if request.method == "HEAD" {
            return easy.set(CURLOPT_NOBODY, true)
        }
        easy.set(CURLOPT_CUSTOMREQUEST, request.method)
    }

    private func setInlineBody() {
        inlineBody?.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            easy.note(inlet_curl_set_body(easy.handle, start, curl_off_t(bytes.count)))
        }
    }

    private func setFields() {
        // curl would wait for "100 Continue" before a body: a round trip each time, and a second where the server does
        // not know it. That helps where bodies are often refused; ours hardly ever are, and curl stops one that is
        // answered early. An empty value removes the field.
        easy.add(field: "Expect:")
        // Otherwise curl declares such a body a form.
        if inlineBody != nil, !request.headers.contains(where: { FieldName.isSame($0.name, "content-type") }) {
            easy.add(field: "Content-Type:")
        }
        var line: [UInt8] = []
        line.reserveCapacity(Self.usualLine)
        for (name, value) in request.headers {
            line.removeAll(keepingCapacity: true)
            line += name.utf8
            // "Name:" would remove a field of curl's own; "Name;" sends it empty.
            line += (value.isEmpty ? ";" : ": ").utf8
            line += value.utf8
            line.append(0)
            easy.add(line: line)
        }
        easy.setFields()
    }

    /// Fits a signature; a longer line grows its buffer.
    private static let usualLine = 384
}

extension Transfer {
    /// `CURLAUTH_BASIC`, a macro that Swift does not import. Other methods would cost a refused request, with its body,
    /// each time.
    private static let basicLogin = 1

    /// Uses the chosen proxy or none, and never libcurl's reading of the environment.
    ///
    /// A proxy reached by TLS needs a certificate like any server; a pin concerns only the destination.
    func setProxy(_ trust: Trust) {
        // An empty name means no proxy, whatever the environment says (CURLOPT_PROXY(3)); an empty list has no
        // exceptions.
        easy.set(CURLOPT_PROXY, submission.proxy?.description ?? "")
        guard let proxy = submission.proxy else { return }
        easy.set(CURLOPT_NOPROXY, "")
        // The proxy's answer to CONNECT is not part of the answer, and our header, with the destination's login, is not
        // for the proxy.
        easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        easy.set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        if let user = proxy.user {
            easy.set(CURLOPT_PROXYUSERNAME, user)
            easy.set(CURLOPT_PROXYPASSWORD, proxy.password?.reveal() ?? "")
            easy.set(CURLOPT_PROXYAUTH, Self.basicLogin)
        }
        guard proxy.scheme == .https else { return }
        easy.set(CURLOPT_PROXY_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        easy.set(CURLOPT_PROXY_SSL_VERIFYPEER, true)
        easy.set(CURLOPT_PROXY_SSL_VERIFYHOST, 2)
        guard let caFile = trust.caFile else { return }
        caFile.withPlatformString { easy.set(CURLOPT_PROXY_CAINFO, path: $0) }
        easy.set(CURLOPT_PROXY_CAPATH, "/etc/ssl/certs")
    }

    /// A failure caused by the proxy itself; nil when the destination, or the path behind the proxy, is to blame.
    func proxyFailure(_ code: CURLcode) -> TransferError? {
        guard let proxy = submission.proxy, SystemError.shortage() == nil else { return nil }
        let connectStatus = easy.connectStatus
        let fault: ProxyFault
        switch code {
        case _ where request.url.scheme == "https" && !proxy.isSOCKS && connectStatus >= 300:
            fault =
                switch connectStatus {
                // A tunnel that was never made carried nothing.
                case 500...: cannotReach(connectStatus, .connectFailed)
                case 407: loginNeeded(proxy)
                default: refused(": it answered \(connectStatus)")
                }
        case CURLE_COULDNT_RESOLVE_PROXY:
            let remedy = "check its spelling in 'proxy' or the environment"
            fault = (.nameNotFound, "has an unknown host name", remedy)
        // Only the proxy is connected to; what it cannot reach itself it says in its own words.
        case CURLE_COULDNT_CONNECT:
            let remedy = "check that it runs, or set 'proxy: off' if you need none"
            fault = (.connectFailed, "does not answer", remedy)
        case CURLE_PROXY, CURLE_LOGIN_DENIED: fault = refused("")
        default: return nil
        }
        return error(fault, proxy, "\(DisplayText.escape(easy.detail(code))), curl \(code.rawValue)")
    }

    /// The meaning of a status that the proxy itself gave to a plain request; nil for the destination's answers.
    ///
    /// Only gateways send 502 and 504. Through a tunnel everything comes from the destination.
    func proxyRefusal(_ status: Int) -> TransferError? {
        guard let proxy = submission.proxy, request.url.scheme == "http", !proxy.isSOCKS else { return nil }
        switch status {
        case 407: return error(loginNeeded(proxy), proxy, "status \(status)")
        // The request may have arrived.
        case 502, 504: return error(cannotReach(status, .serverError), proxy, "status \(status)")
        default: return nil
        }
    }

    private typealias ProxyFault = (code: ErrorCode, what: String, remedy: String)

    private func loginNeeded(_ proxy: ProxyServer) -> ProxyFault {
        let what = proxy.user == nil ? "requires a login" : "refuses our login"
        return (.proxyRefused, what, "correct 'user' and 'password' of 'proxy'")
    }

    private func refused(_ answer: String) -> ProxyFault {
        let remedy = "ask its administrator to allow this host, or add the host to no_proxy"
        return (.proxyRefused, "does not allow this host" + answer, remedy)
    }

    private func cannotReach(_ status: Int, _ code: ErrorCode) -> ProxyFault {
        let remedy = "check that the server runs and that the proxy may reach it, or add its host to no_proxy"
        return (code, "answered \(status): it cannot reach the server", remedy)
    }

    /// Each is an outage: every request would fail alike.
    private func error(_ fault: ProxyFault, _ proxy: ProxyServer, _ cause: String) -> TransferError {
        let text = "\(request.label): the proxy \(proxy) \(fault.what) (\(cause)); \(fault.remedy)"
        return TransferError(fault.code, text, isOutage: true)
    }
}

extension ProxyServer {
    var isSOCKS: Bool { scheme == .socks5 || scheme == .socks5h }
}
