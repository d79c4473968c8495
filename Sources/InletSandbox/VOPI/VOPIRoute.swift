/// What a request is for, read from its method and path.
enum VOPIRoute: Sendable, Equatable {
    /// The reads that an API key may do on both generations.
    enum Read: String, Sendable {
        case video
        case frames
        case finalFrames = "frames/final"
        case images
        case groupedImages = "images/grouped"
    }

    case ready
    case health
    case refresh
    case presign
    case put(key: String)
    case get(key: String)
    case createJob
    case listJobs
    case job(String)
    case status(String)
    case cancel(String)
    case delete(String)
    case deleteImage(String, frame: String, version: String)
    case downloadURLs(String)
    case metadata(String)
    case read(Read, String)
    case balance
    case unknown

    /// The path in front of the keys of presigned URLs: the bucket's name, as path-style S3 addresses have it.
    static let bucket = "/vopi-storage/"
    private static let prefix = "/api/v1/"

    init(method: String, path: String, _ generation: VOPIRules.Generation) {
        self = Self.outside(method, path) ?? Self.inside(method, path, generation)
    }

    private static func outside(_ method: String, _ path: String) -> Self? {
        switch (method, path) {
        case ("GET", "/ready"): .ready
        case ("GET", "/health"): .health
        case ("PUT", _) where path.hasPrefix(bucket): .put(key: String(path.dropFirst(bucket.count)))
        case ("GET", _) where path.hasPrefix(bucket), ("HEAD", _) where path.hasPrefix(bucket):
            .get(key: String(path.dropFirst(bucket.count)))
        default: nil
        }
    }

    private static func inside(_ method: String, _ path: String, _ generation: VOPIRules.Generation) -> Self {
        guard path.hasPrefix(prefix) else { return .unknown }
        let parts = path.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false).map(
            String.init)
        if parts.first == "jobs" { return jobs(method, Array(parts.dropFirst()), generation) }
        switch (method, parts) {
        case ("POST", ["uploads", "presign"]): return .presign
        case ("POST", ["auth", "refresh"]) where generation == .bearer: return .refresh
        case ("GET", ["credits", "balance"]) where generation == .bearer: return .balance
        default: return .unknown
        }
    }

    private static func jobs(_ method: String, _ parts: [String], _ generation: VOPIRules.Generation) -> Self {
        switch (method, parts.count) {
        case ("POST", 0): return .createJob
        case ("GET", 0): return .listJobs
        case ("GET", 1): return .job(parts[0])
        case ("DELETE", 1): return .delete(parts[0])
        case ("POST", 2) where parts[1] == "cancel" && generation == .bearer: return .cancel(parts[0])
        case ("DELETE", 4) where parts[1] == "images" && generation == .bearer:
            return .deleteImage(parts[0], frame: parts[2], version: parts[3])
        case ("GET", 2), ("GET", 3): return detail(parts[0], parts.dropFirst().joined(separator: "/"))
        default: return .unknown
        }
    }

    private static func detail(_ id: String, _ rest: String) -> Self {
        switch rest {
        case "status": .status(id)
        case "download-urls": .downloadURLs(id)
        case "metadata": .metadata(id)
        default: Read(rawValue: rest).map { .read($0, id) } ?? .unknown
        }
    }

    var operation: VOPIOperation {
        switch self {
        case .ready, .health: .ready
        case .refresh: .refresh
        case .presign: .presign
        case .put: .upload
        case .get: .download
        case .createJob: .createJob
        case .listJobs: .listJobs
        case .job: .job
        case .status: .status
        case .cancel: .cancel
        case .delete: .delete
        case .deleteImage: .deleteImage
        case .downloadURLs: .downloadURLs
        case .metadata: .metadata
        case .read: .results
        case .balance: .balance
        case .unknown: .other
        }
    }

    /// Whether it is the object store's: presigned, and XML where it refuses.
    var isOfStore: Bool {
        switch self {
        case .put, .get: true
        default: false
        }
    }
}
