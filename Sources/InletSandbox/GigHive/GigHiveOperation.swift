/// What a client may ask of the GigHive sandbox; counters and faults go by these.
package enum GigHiveOperation: String, SandboxOperation {
    /// POST of a multipart form to `/api/uploads`, `/api/uploads.php` or `/api/media-files`.
    case upload
    /// GET of one asset's metadata.
    case asset
    /// POST `/api/uploads/finalize`.
    case finalize
    /// OPTIONS `/files/`.
    case tusOptions
    /// POST `/files/`.
    case tusCreate
    case tusPatch
    case tusHead
    /// DELETE of a tus upload.
    case tusDelete
    /// POST `/db/delete_media_files.php`.
    case delete
    /// GET `/db/health.php`.
    case health
    /// GET of a guest's status or token.
    case guest
    /// A request that is none of these.
    case other
}

package typealias GigHiveFault = OperationFault<GigHiveOperation>

extension FaultReply {
    /// An error as the application words it: `error` is `Server Error`, `Server error`, `Bad Request` …
    package static func gigHive(_ status: Int, error: String, message: String) -> FaultReply {
        FaultReply(
            status, type: "application/json",
            body: #"{"error":"\#(error.escapedForJSON)","message":"\#(message.escapedForJSON)"}"#)
    }

    /// An error page as Apache, ModSecurity or a proxy answers it.
    package static func page(_ status: Int, _ title: String) -> FaultReply {
        FaultReply(status, type: "text/html; charset=iso-8859-1", body: GigHiveAnswer.page(status, title))
    }

    /// An error as the tus server words it, e.g. `ERR_UPLOAD_LOCKED: file currently locked`.
    package static func tus(_ status: Int, _ text: String) -> FaultReply {
        FaultReply(status, type: "text/plain; charset=utf-8", body: text + "\n")
    }

    /// A limit of the proxy in front: nothing but the status and the proxy's mark.
    package static let cloudflareLimit = FaultReply(413, fields: ["cf-ray": "8f1c0ffee0ddf00d-FRA"], body: "")
}

extension String {
    fileprivate var escapedForJSON: String { replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") }
}
