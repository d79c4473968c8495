import Hummingbird
import Testing

@testable import InletSandbox

@Suite struct RouteTests {
    static let table: [(pattern: String, request: String, places: [String: String]?)] = [
        ("GET /jobs/{id}", "GET /jobs/7", ["id": "7"]), ("GET /jobs/{id}", "GET /jobs/", ["id": ""]),
        ("GET /jobs/{id}", "GET /jobs", nil), ("GET /jobs/{id}", "GET /jobs/7/status", nil),
        ("GET /jobs/{id}", "POST /jobs/7", nil), ("GET|HEAD /a", "HEAD /a", [:]), ("* /a", "PATCH /a", [:]),
        ("GET /jobs/{id}/status", "GET /jobs/7/status", ["id": "7"]), ("*", "PUT /x//y", [:]),
        ("PUT /{bucket}/{key...}", "PUT /b/a//c/", ["bucket": "b", "key": "a//c/"]),
        ("PUT /{bucket}/{key...}", "PUT /b/", nil), ("PUT /{bucket}/{key...}", "PUT /b", nil),
        ("GET /{b}?uploads", "GET /b?x=1&uploads", ["b": "b"]), ("GET /{b}?uploads", "GET /b", nil),
        ("GET /{b}?list-type=2", "GET /b?list-type=2", ["b": "b"]), ("GET /{b}?list-type=2", "GET /b?list-type=1", nil),
    ]

    @Test(arguments: table)
    func `a row's pattern tells its requests and what stands at its places`(
        _ pattern: String, _ request: String, _ places: [String: String]?
    ) throws {
        let route = SandboxRoute<SpiralOperation>(pattern, .read) { _ in Response(status: .ok) }
        let words = request.split(separator: " ").map(String.init)
        let halves = words[1].split(separator: "?").map(String.init)
        let query = try #require(URIText.decodeQuery(halves.count > 1 ? halves[1] : ""))
        let address = SignableRequest(method: words[0], path: halves[0], query: query, host: "h")
        let found = route.places(in: address, SandboxRouter<SpiralOperation>.components(address.path))
        #expect(found == places)
    }

    @Test func `a part has a number where its row is about one`() {
        let address = SignableRequest(method: "PUT", path: "/a", query: [("partNumber", "3")], host: "h")
        let row = { SandboxRoute<SpiralOperation>($0, .part) { _ in Response(status: .ok) } }
        #expect(row("PUT /{key...}?partNumber").part(of: address) == 3 && row("PUT /{key...}").part(of: address) == nil)
    }
}
