import CCurl
import InletCore
import InletLinux
import SystemPackage

extension Transfer {
    /// `CURLAUTH_BASIC`, a macro that Swift does not see. Others would cost a refused request, and its body, each time.
    private static let basicLogin = 1

    /// Through the proxy that was chosen, or none: never what libcurl finds in the environment.
    ///
    /// A proxy that is reached by TLS needs a certificate like any server; a pin is the destination's alone.
    func setProxy(_ trust: Trust) {
        // An empty name is no proxy, whatever the environment says (CURLOPT_PROXY(3)); an empty list has no exceptions.
        easy.set(CURLOPT_PROXY, submission.proxy?.description ?? "")
        guard let proxy = submission.proxy else { return }
        easy.set(CURLOPT_NOPROXY, "")
        // What the proxy says to CONNECT is not of the answer, and our header, with the login at the destination in it, is
        // not the proxy's.
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

    /// The failure that is the proxy's own doing; nil when the destination, or the way behind the proxy, is to blame.
    func proxyFailure(_ code: CURLcode) -> TransferError? {
        guard let proxy = submission.proxy, SystemError.shortage() == nil else { return nil }
        return ProxyFault(
            code, connectStatus: easy.connectStatus, hasTunnel: request.url.scheme == "https", proxy
        ).map { $0.error(request.label, proxy, detail: easy.detail(code), code) }
    }

    /// What a plain request's status means that the proxy has answered itself; nil for the destination's answers.
    ///
    /// 502 and 504 come of gateways only. Through a tunnel all that is read is the destination's.
    func proxyRefusal(_ status: Int) -> TransferError? {
        guard let proxy = submission.proxy, request.url.scheme == "http", !proxy.isSOCKS else { return nil }
        return ProxyFault(answer: status).map { $0.error(request.label, proxy, detail: "status \(status)", CURLE_OK) }
    }
}

extension ProxyServer {
    var isSOCKS: Bool { scheme == .socks5 || scheme == .socks5h }
}

/// What went wrong at a proxy. Each is an outage: every request would fare the same.
enum ProxyFault: Equatable {
    case nameNotFound
    case unreachable
    case loginNeeded
    /// With the proxy's status, 0 where it has none to say.
    case refused(Int)
    case cannotReach(Int)

    /// By curl's result for a request through a proxy.
    ///
    /// - Parameters:
    ///   - connectStatus: what the proxy has answered to CONNECT; 0 = nothing.
    ///   - hasTunnel: whether it was to be asked for a tunnel.
    init?(_ code: CURLcode, connectStatus: Int, hasTunnel: Bool, _ proxy: ProxyServer) {
        if hasTunnel, !proxy.isSOCKS, connectStatus >= 300 {
            self =
                connectStatus >= 500
                ? .cannotReach(connectStatus) : ProxyFault(answer: connectStatus) ?? .refused(connectStatus)
            return
        }
        switch code {
        case CURLE_COULDNT_RESOLVE_PROXY: self = .nameNotFound
        // Only the proxy is connected to; what it cannot reach itself it says in its own words.
        case CURLE_COULDNT_CONNECT: self = .unreachable
        case CURLE_PROXY, CURLE_LOGIN_DENIED: self = .refused(0)
        default: return nil
        }
    }

    /// By the status of an answer that only proxies give; nil for others.
    init?(answer status: Int) {
        switch status {
        case 407: self = .loginNeeded
        case 502, 504: self = .cannotReach(status)
        default: return nil
        }
    }

    func error(_ label: String, _ proxy: ProxyServer, detail: String, _ code: CURLcode) -> TransferError {
        let (kind, what, remedy) = said(proxy, isPlain: code == CURLE_OK)
        let cause = DisplayText.escape(detail) + (code == CURLE_OK ? "" : ", curl \(code.rawValue)")
        return TransferError(kind, "\(label): the proxy \(proxy) \(what) (\(cause)); \(remedy)", isOutage: true)
    }

    private func said(_ proxy: ProxyServer, isPlain: Bool) -> (ErrorCode, String, String) {
        switch self {
        case .nameNotFound:
            (.nameNotFound, "has a name that was not found", "check its spelling in 'proxy' or the environment")
        case .unreachable:
            (.connectFailed, "does not answer", "check that it runs, or set 'proxy: off' where none is needed")
        case .loginNeeded:
            (
                .proxyRefused, proxy.user == nil ? "wants a login" : "does not take our login",
                "correct 'user' and 'password' of 'proxy'"
            )
        case .refused(let status):
            (
                .proxyRefused, "does not let us through" + (status == 0 ? "" : ": it answered \(status)"),
                "ask who runs it to allow this host, or name the host in no_proxy"
            )
        case .cannotReach(let status):
            (
                // A tunnel that was never made has carried nothing; a plain request may have arrived.
                isPlain ? .serverError : .connectFailed, "answered \(status): it cannot reach the server",
                "check that the server runs and that the proxy may reach it, or name its host in no_proxy"
            )
        }
    }
}
