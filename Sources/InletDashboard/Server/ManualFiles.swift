internal import HTTPTypes
internal import Hummingbird
internal import InletCore
internal import InletLinux
internal import NIOCore
package import SystemPackage

/// Serves the HTML manual below `/manual/`, to everybody: it holds no secret. Only regular files of that one folder, by plain
/// names: no other folder can be reached, by no symlink either.
package struct ManualFiles: Sendable {
    private static let base = "/manual/"
    /// Bytes of one file. `packaging/docs.sh` makes no larger one.
    static let largest = 1 << 20
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml",
        "png": "image/png", "jpg": "image/jpeg",
    ]
    /// Its pages have no scripts, and load nothing but their own style and pictures.
    private static let policy =
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'"
    private static let absence = """
        <!doctype html>
        <html lang="en">
        <title>The manual is not installed</title>
        <h1>The manual is not installed</h1>
        <p>Inlet's Debian package puts it in /usr/share/inlet/manual; restart Inlet after installing it. From a clone,
        packaging/docs.sh builds it. The man pages inlet(1) and inlet.yaml(5) hold the reference.</p>
        </html>

        """

    private let places: [FilePath]
    private let pool = BlockingPool(name: "manual", threads: 1, idle: .seconds(5))
    /// Each answer is in memory until its reader has taken it.
    private let answers = Semaphore(16)

    /// - Parameter places: the first that is there is served.
    package init(_ places: [FilePath] = ManualFolder.places) { self.places = places }

    /// nil for a path outside of the manual.
    func response(to request: Request) async -> Response? {
        let path = request.uri.path
        if path == Self.base.dropLast() {
            // The pages' relative links need the slash.
            return Response(status: .permanentRedirect, headers: [.location: Self.base])
        }
        guard path.hasPrefix(Self.base) else { return nil }
        guard request.isReading else { return .notReadable }
        var response = await answer(to: request, String(path.dropFirst(Self.base.count)))
        response.headers[.contentSecurityPolicy] = Self.policy
        return response
    }

    private func answer(to request: Request, _ path: String) async -> Response {
        let name = path.isEmpty ? "index.html" : path
        guard let permit = answers.permit() else {
            return .fault(APIFault(429, "busy", "too many answers are under way; try again", wait: .seconds(5)))
        }
        guard let type = Self.type(of: name), let component = FilePath.Component(name) else { return Self.missing }
        let content = await pool.run { Self.content(of: component, in: places) }
        switch content {
        case .file(let bytes): return PageFile(type: type, bytes).response(to: request).holding(permit)
        case .noFile: return Self.missing
        case .noManual:
            return .text(Self.absence, type: "text/html; charset=utf-8", status: 404)
        }
    }

    private static let missing = Response.fault(
        .notFound("the manual has no such page; \(base) has the list of its pages"))

    /// nil for a name that no file of the manual has.
    static func type(of name: String) -> String? {
        guard name.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9_-]*\.[a-z]+/) != nil else { return nil }
        return name.split(separator: ".").last.flatMap { types[String($0)] }
    }

    private enum Content {
        case file([UInt8])
        case noFile
        case noManual
    }

    /// Blocks.
    private static func content(of name: FilePath.Component, in places: [FilePath]) -> Content {
        // A folder that cannot be opened is as good as absent.
        guard let folder = places.lazy.compactMap({ try? Folder($0) }).first else { return .noManual }
        // Links, folders, files that are too large or unreadable: the manual has none of these.
        return (try? folder.read(name, limit: largest)).map { .file($0) } ?? .noFile
    }
}

/// A file that is served as it stands.
struct PageFile: Sendable {
    let type: String
    private let tag: String
    private let body: ByteBuffer

    init(type: String, _ bytes: [UInt8]) {
        (self.type, body) = (type, ByteBuffer(bytes: bytes))
        tag = "\"\(SHA256.bytes(of: bytes).prefix(16).hex)\""
    }

    /// The file, or 304 when the `ETag` matches.
    func response(to request: Request) -> Response {
        guard request.isReading else { return .notReadable }
        // Browsers keep the files, and ask each time: another version of Inlet has other files.
        var headers: HTTPFields = [.eTag: tag, .cacheControl: "no-cache"]
        let known = request.headers[.ifNoneMatch]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        if known.contains(tag) || known.contains("*") { return Response(status: .notModified, headers: headers) }
        headers[.contentType] = type
        let response = Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: body))
        return request.method == .head ? response.withoutBody : response
    }
}

extension Request {
    fileprivate var isReading: Bool { method == .get || method == .head }
}

extension Response {
    fileprivate static let notReadable = fault(APIFault(405, "method", "this path knows GET", allowed: ["GET"]))
}
