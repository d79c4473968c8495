/// What a request is for, read from its method and path.
enum GigHiveRoute: Sendable, Equatable {
    /// The path a form is sent to: the firewall looks at the type on two of the three.
    enum FormDoor: String, Sendable {
        case uploads = "/api/uploads"
        case uploadsPHP = "/api/uploads.php"
        case mediaFiles = "/api/media-files"
    }

    /// Who may pass.
    enum Access: Sendable {
        case everybody
        /// Login of `admin` or `uploader`.
        case login
        /// That, or anything in `X-Upload-Token`.
        case loginOrToken
    }

    case upload(FormDoor)
    case asset(id: Int)
    case finalize
    case tusOptions
    case tusCreate
    case tusPatch(id: String)
    case tusHead(id: String)
    case tusDelete(id: String)
    /// Below `/files/`, by a method that is not of tus.
    case tusOther
    case delete
    case health
    case guestStatus
    case guestToken
    /// GET `/api/media-files`, which is not made yet.
    case listing
    case unknown

    init(method: String, path: String) {
        if path.hasPrefix("/files/") {
            self = Self.tus(method, String(path.dropFirst("/files/".count)))
            return
        }
        switch (method, path) {
        case ("POST", "/api/uploads/finalize"): self = .finalize
        case ("GET", "/api/media-files"): self = .listing
        case (_, "/db/delete_media_files.php"): self = .delete
        case ("GET", "/db/health.php"), ("HEAD", "/db/health.php"): self = .health
        case ("GET", "/api/guest-status.php"): self = .guestStatus
        case ("GET", "/api/upload-token.php"): self = .guestToken
        case ("POST", _): self = FormDoor(rawValue: path).map { .upload($0) } ?? .unknown
        case ("GET", _): self = Self.asset(path)
        default: self = .unknown
        }
    }

    private static func tus(_ method: String, _ id: String) -> Self {
        switch method {
        case "OPTIONS": .tusOptions
        case "POST" where id.isEmpty: .tusCreate
        case "PATCH" where !id.isEmpty: .tusPatch(id: id)
        case "HEAD" where !id.isEmpty: .tusHead(id: id)
        case "DELETE" where !id.isEmpty: .tusDelete(id: id)
        default: .tusOther
        }
    }

    private static func asset(_ path: String) -> Self {
        for folder in ["/api/uploads/", "/api/uploads.php/"] where path.hasPrefix(folder) {
            if let id = Int(path.dropFirst(folder.count)) { return .asset(id: id) }
        }
        return .unknown
    }

    var access: Access {
        switch self {
        case .upload(.uploads), .finalize, .tusOptions, .tusCreate, .tusPatch, .tusHead, .tusDelete, .tusOther:
            .loginOrToken
        case .upload, .asset, .delete, .listing: .login
        case .health, .guestStatus, .guestToken, .unknown: .everybody
        }
    }

    var operation: GigHiveOperation {
        switch self {
        case .upload: .upload
        case .asset: .asset
        case .finalize: .finalize
        case .tusOptions: .tusOptions
        case .tusCreate: .tusCreate
        case .tusPatch: .tusPatch
        case .tusHead: .tusHead
        case .tusDelete: .tusDelete
        case .delete: .delete
        case .health: .health
        case .guestStatus, .guestToken: .guest
        case .listing, .tusOther, .unknown: .other
        }
    }
}
