import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage

/// Runs a GigHive sandbox on a folder of its own (or `directory`) while `body` talks to it over real sockets.
func withGigHive(
    directory: FilePath? = nil, faults: GigHiveFault..., rules: GigHiveRules = GigHiveClient.rules,
    _ body: @Sendable @escaping (GigHiveSandbox, GigHiveClient) async throws -> Void
) async throws {
    let folder = try TemporaryDirectory()
    let passwords = ["admin", "uploader", "viewer"].map { ($0, Secret("canary-" + $0)) }
    let sandbox = try GigHiveSandbox(
        directory: directory ?? folder.path, passwords: Dictionary(uniqueKeysWithValues: passwords), rules: rules,
        faults: FaultPlan(faults))
    try await whileServing({ try await sandbox.run() }) {
        try await body(sandbox, GigHiveClient(http: SandboxClient(port: try await sandbox.port())))
    }
}

/// What a small, honest client of both transports does.
struct GigHiveClient: Sendable {
    typealias Answer = SandboxClient.Answer

    /// Of the real limits and waits only the shape.
    static let rules = GigHiveRules(
        maximumBytes: 1 << 20, formLimit: 2 << 20, hookWait: .milliseconds(20),
        guestTokens: [.init(Secret("canary-guest"), eventDate: "2026-05-06", orgName: "Anna & Ben")])
    static let fields = ["label": "Song one", "event_date": "2026-01-02", "org_name": "The Band"]

    let http: SandboxClient
    var user: String? = "uploader"
    var password = "canary-uploader"
    var token: String?

    var authorization: [String: String] {
        if let token { return ["X-Upload-Token": token] }
        guard let user else { return [:] }
        return ["Authorization": "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()]
    }

    func send(
        _ method: String, _ path: String, _ body: Data? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
        let fields = authorization.merging(headers) { $1 }
        let url = path.hasPrefix("http") ? path : http.origin + path
        return try await http.send(method, url, body, headers: fields)
    }

    func json(_ path: String, _ body: [String: Any]) async throws -> Answer {
        let data = try JSONSerialization.data(withJSONObject: body)
        return try await send("POST", path, data, headers: ["Content-Type": "application/json"])
    }

    /// One form with a file.
    func upload(
        _ media: Data, name: String = "clip.mp4", type: String = "video/mp4", part: String = "file",
        fields: [String: String] = fields, to path: String = "/api/uploads.php", headers: [String: String] = [:]
    ) async throws -> Answer {
        let boundary = "----inlet\(media.count)"
        var form = Data()
        for (field, value) in fields.sorted(by: { $0.key < $1.key }) {
            form += Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"\(field)\"\r\n\r\n\(value)\r\n".utf8)
        }
        form += Data(
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(part)\"; filename=\"\(name)\"\r\n".utf8)
        form += Data("Content-Type: \(type)\r\n\r\n".utf8) + media + Data("\r\n--\(boundary)--\r\n".utf8)
        let own = ["Content-Type": "multipart/form-data; boundary=\(boundary)"]
        return try await send("POST", path, form, headers: own.merging(headers) { $1 })
    }

    // MARK: tus

    static let tus = ["Tus-Resumable": "1.0.0"]

    func create(_ length: Int, metadata: [String: String] = ["filename": "clip.mp4"]) async throws -> Answer {
        let pairs = metadata.map { "\($0.key) \(Data($0.value.utf8).base64EncodedString())" }
        let own = ["Upload-Length": String(length), "Upload-Metadata": pairs.joined(separator: ",")]
        return try await send("POST", "/files/", headers: Self.tus.merging(own) { $1 })
    }

    func patch(_ url: String, at offset: Int, _ body: Data) async throws -> Answer {
        let own = ["Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream"]
        return try await send("PATCH", url, body, headers: Self.tus.merging(own) { $1 })
    }

    func offset(of url: String) async throws -> String? {
        try await send("HEAD", url, headers: Self.tus).headers["upload-offset"]
    }

    /// Sends all of `media` in one piece; returns the address of the upload.
    func sent(_ media: Data, metadata: [String: String] = ["filename": "clip.mp4"]) async throws -> String {
        let created = try await create(media.count, metadata: metadata)
        guard let url = created.headers["location"] else { throw Refused(answer: created.text) }
        let answer = try await patch(url, at: 0, media)
        guard answer.status == 204 else { throw Refused(answer: answer.text) }
        return url
    }

    func finalize(_ url: String, fields: [String: Any] = fields) async throws -> Answer {
        let id = url.split(separator: "/").last.map(String.init) ?? ""
        return try await json("/api/uploads/finalize", fields.merging(["upload_id": id]) { $1 })
    }
}

extension SandboxClient.Answer {
    /// The status and the application's words, e.g. `400 Label is required`.
    var words: String { "\(status) \(json["message"] as? String ?? "")" }
}

/// The beginning of an MP4 file, then `count` bytes that differ from seed to seed.
func clip(_ count: Int = 1000, seed: UInt64 = 1) -> Data {
    Data([0, 0, 0, 24]) + Data("ftypmp42\0\0\0\0mp42isom".utf8) + noise(count, seed: seed)
}
