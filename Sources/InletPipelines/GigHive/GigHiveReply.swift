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

    /// nil when the answer is not the JSON it should be.
    init?(_ response: HTTPResponse, request: String) {
        guard response.isJSON, let json = response.jsonBody else { return nil }
        do throws(JSONMismatch) {
            let ids = [try json.number("asset_id"), try json.number("id"), try json.number("existing_asset_id")]
            guard let id = ids.compactMap(\.self).first else { return nil }
            assetID = id
            checksum = try json.text("checksum_sha256")?.lowercased()
            deleteToken = try json.text("delete_token")
            statusNonce = try json.text("status_nonce")
        } catch {
            return nil
        }
        status = response.status
        self.request = request
        isDuplicate = response.status == 409
        let given = [deleteToken, statusNonce].compactMap(\.self).map { Secret($0) }
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
