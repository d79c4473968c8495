import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage

/// A file on a loopback server, and the folder that it is fetched into.
struct Shelf {
    let directory: TemporaryDirectory
    let client = makeClient()
    let pool = BlockingPool(name: "downloads", threads: 2)

    init() throws { directory = try TemporaryDirectory() }

    var downloader: Downloader { Downloader(client: client, pool: pool) }
    var target: FilePath { directory.path.appending("picture.png") }

    /// Requests until all is there, as often as that takes, each error in its turn.
    func fetch(_ download: Download, _ server: ScriptedServer, errors: Seen<ErrorCode> = Seen()) async throws
        -> Downloaded
    {
        let open = try await downloader.open(download)
        let url = try server.url("/x")
        for _ in 1...10 {
            do throws(TransferError) {
                let request = HTTPRequest("GET", url, headers: open.headers)
                if case .whole = try await downloader.fetch(open, request) { return try await downloader.finish(open) }
            } catch {
                errors.append(error.code)
            }
        }
        throw TransferError(.internalFault, "not in ten requests", isOutage: false)
    }

    func content() throws -> String { try String(contentsOfFile: target.string, encoding: .utf8) }

    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path.string).sorted()
    }
}

extension DownloadAnswer {
    var refusal: HTTPResponse? { if case .refused(let response) = self { response } else { nil } }
}

/// Text without a short period.
func text(_ count: Int) -> String { String(pattern(count / 2 + 1).hex.prefix(count)) }
