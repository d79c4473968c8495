import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage

/// Runs `body` beside a VOPI sandbox, on a machine whose one destination it is, logged in.
func withVOPI(
    _ rules: VOPIRules = VOPIRules(pace: .polls(steps: 8)), route: [String] = [],
    _ body: @Sendable @escaping (Place, VOPISandbox) async throws -> Void
) async throws {
    let place = try Place()
    let sandbox = try VOPISandbox(
        directory: place.folder.path.appending("vopi"), apiKey: Secret("vopi-key-7731"), rules: rules)
    try await whileServing({ try await sandbox.run() }) {
        let login = try place.folder.write((sandbox.signIn().refreshToken.reveal() + "\n").utf8, to: "login")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: login.string)
        var config = ConfigText()
        let auth = rules.generation == .bearer ? "{ refresh_token_file: login }" : "{ api_key: \"vopi-key-7731\" }"
        config.destination =
            "type: vopi, url: \"http://127.0.0.1:\(try await sandbox.port())\", poll: 1s, results: pictures, "
            + "auth: \(auth)"
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}

extension Place {
    /// What was fetched of a VOPI job, by the paths below its folder; parts of files too.
    func results(of job: String) -> [String: Data] {
        Self.files(below: folder.path.appending("pictures").appending(job))
    }

    /// Files below a folder, hidden ones too, by their paths; not the lock of a watched folder.
    static func files(below folder: FilePath) -> [String: Data] {
        let names = FileManager.default.enumerator(atPath: folder.string)?.compactMap { $0 as? String } ?? []
        return Dictionary(
            uniqueKeysWithValues: names.filter { $0 != ".inlet/lock" }.compactMap { name in
                let path = folder.string + "/" + name
                var isFolder: ObjCBool = false
                _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
                return isFolder.boolValue ? nil : FileManager.default.contents(atPath: path).map { (name, $0) }
            })
    }
}

extension VOPISandbox {
    /// What was made of a job, as its objects' bytes.
    func made(of job: String) throws -> Set<Data> {
        Set(try pictures(of: job).map { try Data(contentsOf: URL(fileURLWithPath: $0.object.path.string)) })
    }
}
