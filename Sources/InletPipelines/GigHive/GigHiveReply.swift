internal import FoundationEssentials
internal import InletCore
internal import InletTransfer

/// The server's word on a file that it has: a 201, or a 409 about one that was there. Written into the checkpoint before
/// anything else happens, because the token for deleting it is given once.
struct GigHiveReply: Sendable, Equatable, Codable {
    var status: Int
    /// `POST https://host/api/uploads`.
    var request: String
    /// The beginning of the answer without its secrets.
    var head: String
    var assetID: Int64?
    var checksum: String?
    var deleteToken: String?
    /// Guests ask with it what became of their upload.
    var statusNonce: String?
    var isDuplicate: Bool

    private struct Message: Decodable {
        var asset_id: Number?
        var id: Number?
        var existing_asset_id: Number?
        var checksum_sha256: String?
        var delete_token: String?
        var status_nonce: String?
    }

    /// PHP's drivers write numbers from a database as they like: 7 or "7".
    struct Number: Decodable {
        var value: Int64

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            // Some servers write numbers as texts.
            if let number = try? container.decode(Int64.self) {
                value = number
            } else if let number = Int64(try container.decode(String.self)) {
                value = number
            } else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number")
            }
        }
    }

    /// nil when the answer is not the JSON it should be.
    init?(_ response: HTTPResponse, request: String) {
        let type = response.header("Content-Type")?.lowercased() ?? ""
        // As said above.
        guard type.hasPrefix("application/json"),
            let message = try? JSONDecoder().decode(Message.self, from: Data(response.body)),
            let asset = message.asset_id ?? message.id ?? message.existing_asset_id
        else { return nil }
        status = response.status
        self.request = request
        assetID = asset.value
        checksum = message.checksum_sha256?.lowercased()
        deleteToken = message.delete_token
        statusNonce = message.status_nonce
        isDuplicate = response.status == 409
        let given = [message.delete_token, message.status_nonce].compactMap(\.self).map { Secret($0) }
        let words = response.redactor(also: given).redacted(Array(response.body.prefix(64 << 10)))
        head = String(DisplayText.escape(words).prefix(500))
    }

    /// What the journal keeps: visible details, and apart from them what only we may know.
    func proof(_ order: DeliveryOrder, digest: Digest?, asset: HTTPURL?) -> Proof {
        var details = ["status": String(status), "request": request, "answer": head]
        details["asset_id"] = assetID.map { String($0) }
        if isDuplicate { details["duplicate"] = "the server had it already, as this asset" }
        var secrets: [String: String] = [:]
        secrets[Self.deleteTokenName] = deleteToken
        secrets["status_nonce"] = statusNonce
        return Proof(
            key: order.key, size: order.source.size, method: digest == nil ? .size : .sha256,
            content: digest.map { ContentHash(digest: $0, partSize: nil) }, url: asset?.redacted, details: details,
            keepsakes: secrets.isEmpty ? nil : Keepsakes(secrets))
    }

    static let noteName = "answer"
    static let deleteTokenName = "delete_token"
}
