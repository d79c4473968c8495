/// The 201 of an upload and of finalize. Names are those of the JSON.
struct UploadAnswer: Codable, Sendable {
    /// `null`: this server does not look into media.
    struct Unknown: Codable, Sendable {
        init() {}
        init(from decoder: any Decoder) throws {}
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        }
    }

    var id: Int
    var asset_id: Int
    var event_id: Int
    var event_item_id: Int
    var position: Int
    var file_name: String
    var file_type: String
    var mime_type: String
    var size_bytes: Int64
    var checksum_sha256: String
    var event_date: String
    var org_name: String
    var event_type: String
    var label: String
    var participants: String
    var keywords: String
    var duration_seconds = Unknown()
    /// Of a new asset only, and never told again.
    var delete_token: String?
    /// The two of a guest's upload.
    var status_nonce: String?
    var upload_job_id: Int?

    init(
        _ asset: GigHiveCatalog.Asset, _ media: ReceivedMedia, _ item: GigHiveCatalog.Item, _ fields: GigFields,
        token: String?
    ) {
        (id, asset_id) = (asset.id, asset.id)
        (event_id, event_item_id, position) = (item.event, item.id, item.position)
        file_name = media.fileExtension.isEmpty ? media.sha256 : "\(media.sha256).\(media.fileExtension)"
        (file_type, mime_type) = (asset.kind.rawValue, media.mimeType)
        (size_bytes, checksum_sha256) = (media.size, media.sha256)
        (event_date, org_name, event_type) = (fields.eventDate, fields.orgName, fields.eventType)
        (label, participants, keywords) = (fields.label, fields.participants, fields.keywords)
        delete_token = token
    }
}

/// The answer to GET of one asset.
struct AssetAnswer: Encodable, Sendable {
    var id: Int
    var asset_id: Int
    var file_name: String
    var file_ext: String
    var file_type: String
    var mime_type: String
    var size_bytes: Int64
    var checksum_sha256: String
    var duration_seconds = UploadAnswer.Unknown()

    init(_ asset: GigHiveCatalog.Asset) {
        (id, asset_id) = (asset.id, asset.id)
        (file_name, file_ext, file_type) = (asset.fileName, asset.fileExtension, asset.kind.rawValue)
        (mime_type, size_bytes, checksum_sha256) = (asset.mimeType, asset.size, asset.sha256)
    }
}
