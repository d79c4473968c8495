package import InletCore
internal import InletLinux
internal import InletTransfer

/// Who is told what happens, ready to be told.
package struct Outlets: Sendable {
    /// By receiver; the others are programs.
    package var webhooks: [String: Webhook] = [:]
    package var ping: DeadManPing?

    package init() {}
}

extension PipelineFactory {
    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package func webhook(_ settings: NotifySettings) throws(SettingFault) -> Webhook? {
        guard case .webhook(let address) = settings.receiver else { return nil }
        var signature: NoticeSignature?
        if let secret = settings.secret {
            signature = NoticeSignature(secret)
            guard signature != nil else {
                throw SettingFault(key: "secret", message: "begins with whsec_, but what follows is not base64")
            }
        }
        let url = try Self.url(address, "webhook", allowHTTP: settings.allowsHTTP)
        return Webhook(url: url, signature: signature, client: client(.system), timeout: settings.timeout)
    }

    /// Plain http is taken to any host: nothing goes there but the address itself.
    ///
    /// - Throws: `SettingFault` as `webhook` does.
    package func ping(_ settings: PingSettings) throws(SettingFault) -> DeadManPing {
        DeadManPing(url: try Self.url(settings.url, "ping_url", allowHTTP: true), client: client(.system))
    }

    /// The fault does not quote the address.
    private static func url(_ text: Secret, _ key: String, allowHTTP: Bool) throws(SettingFault) -> HTTPURL {
        do throws(TransferError) {
            return try HTTPURL(text.reveal(), rules: .configured(allowHTTP: allowHTTP))
        } catch {
            let why =
                error.code == .insecureURL
                ? "is not encrypted; use https, or set allow_http: true for this receiver"
                : "is no http or https address that can be used"
            throw SettingFault(key: key, message: why)
        }
    }
}
