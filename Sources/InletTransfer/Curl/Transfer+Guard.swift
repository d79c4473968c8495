import CCurl
import InletCore

/// Holds requests whose URL a server has sent to addresses that such a server may name (`HTTPURL.reach`), whatever the
/// URL's host is called and resolves to, and however often that changes (DNS rebinding).
extension Transfer {
    /// The address of a request that came to nothing for want of another.
    struct Refused {
        var text: String
        var scope: HostScope
    }

    /// Asked for each address before it is connected to, and for that of each connection before the request goes out: one
    /// that an earlier request has left may be of a destination of other rights to the same host.
    ///
    /// A proxy looks the name up itself, and is where a person wants it: behind one, the URL's text is all there is to judge.
    func setAddressGuard() {
        guard request.url.reach != nil, submission.proxy == nil, request.unixSocket == nil else { return }
        let context = Unmanaged.passUnretained(self).toOpaque()
        easy.note(inlet_curl_set_address_guard(easy.handle, context, Self.openSocket, Self.useConnection))
    }

    private static let openSocket: curl_opensocket_callback = { context, _, address in
        guard let transfer = from(context), let address else { return inlet_no_socket() }
        guard transfer.mayConnect(to: inlet_curl_socket_address(address)) else { return inlet_no_socket() }
        return inlet_curl_open_socket(address)
    }

    private static let useConnection: curl_prereq_callback = { context, address, _, _, _ in
        guard let transfer = from(context), let address else { return CInt(CURL_PREREQFUNC_ABORT) }
        return transfer.mayUse(String(cString: address)) ? CInt(CURL_PREREQFUNC_OK) : CInt(CURL_PREREQFUNC_ABORT)
    }

    private func mayConnect(to address: UnsafeRawPointer) -> Bool {
        guard let scope = HostScope(socketAddress: address), request.url.reach?.contains(scope) == false else {
            hasSocket = true
            return true
        }
        var text = [CChar](repeating: 0, count: 64)
        inlet_socket_address_text(address, &text, 64)
        refused = Refused(
            text: String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self), scope: scope)
        return false
    }

    private func mayUse(_ address: String) -> Bool {
        let scope = HostScope(address)
        if request.url.reach?.contains(scope) ?? true { return true }
        failure = error(Refused(text: address, scope: scope))
        return false
    }

    /// Of a request that no address was left for: no outage, which would hold up the destination for what one URL says.
    var addressRefusal: TransferError? { hasSocket ? nil : refused.map(error) }

    private func error(_ refused: Refused) -> TransferError {
        TransferError(
            .forbiddenURL,
            "\(request.label) was not sent: \(request.url.host) leads to \(refused.text), a \(refused.scope.label), and the "
                + "server that sent this URL is not that close itself", isOutage: false)
    }

    /// Notes where the host has answered from, for the URLs that it will send.
    func noteHost() {
        guard submission.proxy == nil, request.unixSocket == nil, !request.readsCertificate, answer.hasFields,
            let address = easy.newAddress
        else { return }
        KnownHosts.shared.note(request.url.host, HostScope(address), isProven: request.url.scheme == "https")
    }
}
