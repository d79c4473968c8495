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
        let url = try Self.url(
            address, "webhook", allowHTTP: settings.allowsHTTP, otherwise: "allow_http: true for this receiver")
        return Webhook(
            url: url, signature: signature, client: client(Trust(caFile: settings.caFile)), timeout: settings.timeout)
    }

    /// To another machine by https, unless somebody says otherwise: who reads the address can speak for this agent, and a ping
    /// that tells of a failure says what is wrong.
    ///
    /// - Throws: `SettingFault` as `webhook` does.
    package func ping(_ settings: PingSettings) throws(SettingFault) -> DeadManPing {
        let url = try Self.url(
            settings.url, "ping_url", allowHTTP: settings.allowsHTTP, otherwise: "ping_allow_http: true")
        return DeadManPing(url: url, client: client(Trust(caFile: settings.caFile)))
    }

    /// The fault does not quote the address.
    private static func url(
        _ text: Secret, _ key: String, allowHTTP: Bool, otherwise: String
    ) throws(SettingFault) -> HTTPURL {
        do throws(TransferError) {
            return try HTTPURL(text.reveal(), rules: .configured(allowHTTP: allowHTTP))
        } catch {
            let why =
                error.code == .insecureURL
                ? "is not encrypted; use https, or set \(otherwise)"
                : "is no http or https address that can be used"
            throw SettingFault(key: key, message: why)
        }
    }
}
