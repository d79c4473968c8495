internal import Foundation
internal import InletCore
internal import InletTransfer

/// How a receiver knows that a notice is from us and whole: Standard Webhooks 1.0.0, and besides it GitHub's older
/// `X-Hub-Signature-256`, which says nothing of the time.
struct NoticeSignature: Sendable {
    /// A secret that begins so is base64 of the key's bytes (Standard Webhooks 1.0.0, "Signature scheme").
    static let prefix = "whsec_"

    private let key: [UInt8]
    private let text: [UInt8]

    /// nil when what follows `whsec_` is not base64.
    init?(_ secret: Secret) {
        let whole = secret.reveal()
        text = Array(whole.utf8)
        guard whole.hasPrefix(Self.prefix) else {
            key = text
            return
        }
        guard let bytes = Data(base64Encoded: String(whole.dropFirst(Self.prefix.count))), !bytes.isEmpty else {
            return nil
        }
        key = Array(bytes)
    }

    /// - Parameters:
    ///   - id: the same for every try of a notice.
    ///   - time: of this try, in seconds since 1970: receivers refuse what is minutes old.
    func headers(id: String, time: Int64, body: [UInt8]) -> HTTPFields {
        let signed = Array("\(id).\(time).".utf8) + body
        let hub = MessageCode(key: text).code(of: body).hex
        return [
            ("webhook-signature", "v1," + Data(MessageCode(key: key).code(of: signed)).base64EncodedString()),
            ("X-Hub-Signature-256", "sha256=" + hub),
        ]
    }
}
