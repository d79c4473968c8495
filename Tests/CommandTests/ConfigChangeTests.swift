import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Changes of the configuration over the port of a real agent.
@Suite struct ConfigChangeTests {
    /// A page's requests.
    private struct Page {
        let port: Int
        var cookie = ""

        func ask(_ method: String, _ path: String, _ body: [String: Any]? = nil) async throws -> (Int, [String: Any]) {
            let text = try body.map { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) }
            let answer = try await RawClient(port: port).request(
                method, "/api/v1/" + path,
                headers: ["Content-Type": "application/json", "X-Inlet": "1", "Cookie": cookie], body: text)
            let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
            return (answer.status, object ?? [:])
        }

        func form() async throws -> [String: Any] { try await ask("GET", "config/form").1 }

        mutating func logIn(_ secret: String) async throws {
            let answer = try await RawClient(port: port).request(
                "POST", "/api/v1/login", headers: ["Content-Type": "application/json", "X-Inlet": "1"],
                body: "{\"secret\": \"\(secret)\"}")
            cookie = String(try #require(answer.headers["set-cookie"]?.split(separator: ";").first))
        }
    }

    private static let password = "a-long-password"
    private static let reader = "a-token-for-readers"

    private static func place(_ port: Int, _ keys: String = ", edit: true") throws -> Place {
        let login = "password: \(password), token: \"a-token-for-programs-of-32-bytes\", read_only_token: \(reader)"
        let place = try Place(top: ["dashboard: { listen: \"127.0.0.1:\(port)\", \(login)\(keys) }"])
        let text = String(decoding: try place.content(place.configuration), as: UTF8.self)
        try place.configure(text: text + "# kept for \(password)\n")
        return place
    }

    /// An agent whose page can be asked.
    private static func run(_ place: Place, launcher: [String] = []) async throws -> InletProcess {
        let agent = try await place.run(launcher: launcher)
        try await agent.line("dashboard.ready")
        return agent
    }

    private static func added(_ place: Place) -> [String: Any] {
        [
            "list": "destinations", "name": "copy",
            "values": ["type": "folder", "path": place.folder.path.appending("library").appending("copy").string],
        ]
    }

    private static func text(_ place: Place) throws -> String {
        String(decoding: try place.content(place.configuration), as: UTF8.self)
    }

    private static func versions(_ place: Place) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: place.folder.path.string).filter { $0.hasSuffix(".old") }
    }

    /// Another text than the form began with.
    private static func expectConflict(of order: [String: Any], _ page: Page) async throws {
        let (late, conflict) = try await page.ask("POST", "config/apply", order)
        #expect(late == 409 && conflict["error"] as? String == "changed", "\(conflict)")
        let lines = (conflict["differences"] as? [[String: String]] ?? []).compactMap { $0["text"] }
        #expect(lines.contains { $0.contains("copy:") }, "\(conflict)")
    }

    private static func expectAddition(_ trial: [String: Any]) {
        let diff = (trial["diff"] as? [[String: String]] ?? []).filter { $0["mark"] == "+" }.compactMap { $0["text"] }
        #expect(diff.contains { $0.contains("copy:") } && diff.contains { $0.contains("type: folder") }, "\(diff)")
        #expect((trial["files"] as? [String: Any])?["known"] as? Int == 1, "\(trial)")
    }

    private static func undo(_ page: Page) async throws {
        let now = try await page.form()
        let version = try #require((now["versions"] as? [String])?.first)
        let undo: [String: Any] = ["hash": now["hash"] as? String ?? "", "version": version]
        #expect(try await page.ask("POST", "config/apply", undo).0 == 200)
    }

    @Test func `a destination is added on the page, takes effect, and is undone`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        chmod(place.configuration.string, 0o640)
        try place.put("there.txt", bytes(10))
        let agent = try await Self.run(place)
        try await agent.line("job.finished")
        var page = Page(port: port)
        try await page.logIn(Self.password)
        let before = try Self.text(place)
        let form = try await page.form()
        let hash = try #require(form["hash"] as? String)
        #expect(form["objection"] == nil && form["file"] as? String == place.configuration.string, "\(form)")

        let order: [String: Any] = ["hash": hash, "edits": [Self.added(place)]]
        let (tried, trial) = try await page.ask("POST", "config/try", order)
        #expect(tried == 200 && trial["ok"] as? Bool == true, "\(trial)")
        Self.expectAddition(trial)
        #expect(try Self.text(place) == before)

        let (status, report) = try await page.ask("POST", "config/apply", order)
        #expect(status == 200 && report["done"] as? Bool == true, "\(report)")
        let event = try await agent.line("config.edited")
        #expect(
            event["by"]?.hasPrefix("dashboard (127.0.0.1)") == true
                && event.fields["changes"] == .list(["destinations.copy"]), "\(event)")
        try await agent.line("config.reloaded")
        #expect(try ["copy:", "# kept for"].allSatisfy(Self.text(place).contains))
        let facts = try FileManager.default.attributesOfItem(atPath: place.configuration.string)
        #expect((facts[.posixPermissions] as? NSNumber)?.intValue == 0o640)
        #expect(try await page.ask("GET", "status").1.description.contains("copy"))

        try await Self.expectConflict(of: order, page)
        try await Self.undo(page)
        #expect(try Self.text(place) == before)
        #expect(try await agent.line("config.edited") { $0.flag("undo") == true }["by"] != nil)
        try place.put("later.txt", bytes(10))
        try await agent.line("job.finished", number: 2)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `secrets stay on the machine, and an empty one keeps what is there`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        let agent = try await Self.run(place)
        var page = Page(port: port)
        try await page.logIn(Self.password)
        let secret = "sk-never-sent-anywhere"
        var hash = try #require(try await page.form()["hash"] as? String)
        let store: [String: Any] = [
            "list": "destinations", "name": "bucket",
            "values": [
                "type": "s3", "bucket": "b", "endpoint": "http://127.0.0.1:9", "allow_http": true, "access_key": "AK",
                "secret_key": secret,
            ],
        ]
        let (_, trial) = try await page.ask("POST", "config/try", ["hash": hash, "edits": [store]])
        #expect(trial["ok"] as? Bool == true && !trial.description.contains(secret), "\(trial)")
        let (_, report) = try await page.ask("POST", "config/apply", ["hash": hash, "edits": [store]])
        #expect(report["done"] as? Bool == true && !report.description.contains(secret), "\(report)")
        let form = try await page.form()
        #expect(!form.description.contains(secret) && !form.description.contains(Self.password))
        let entries = form["destinations"] as? [[String: Any]] ?? []
        let entry = try #require(entries.first { $0["name"] as? String == "bucket" })
        #expect(entry["secrets"] as? [String] == ["access_key", "secret_key"])
        hash = try #require(form["hash"] as? String)
        let edit: [String: Any] = ["list": "destinations", "number": entry["number"] ?? 0, "values": ["bucket": "c"]]
        #expect(try await page.ask("POST", "config/apply", ["hash": hash, "edits": [edit]]).0 == 200)
        let text = try Self.text(place)
        #expect(text.contains(secret) && text.contains("bucket: c"))
        #expect(!(agent.errors + agent.output).contains(secret))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a wrong change is refused with its place, and the ten newest texts are kept`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        let agent = try await Self.run(place)
        var page = Page(port: port)
        try await page.logIn(Self.password)
        var hash = try #require(try await page.form()["hash"] as? String)
        let wrong: [String: Any] = ["list": "routes", "number": 0, "values": ["to": ["nowhere"]]]
        let (_, trial) = try await page.ask("POST", "config/try", ["hash": hash, "edits": [wrong]])
        #expect(trial["ok"] as? Bool == false && "\(trial["errors"] ?? "")".contains("nowhere"), "\(trial)")
        let before = try Self.text(place)
        #expect(try await page.ask("POST", "config/apply", ["hash": hash, "edits": [wrong]]).0 == 422)
        #expect(try Self.text(place) == before && Self.versions(place).isEmpty)
        // A person's own copy is no former text, and stays.
        let own = try place.folder.write("# mine".utf8, to: "inlet.yaml.old")
        for number in 1...12 {
            let edit: [String: Any] = ["list": "watch", "number": 0, "values": ["rescan": "\(number)h"]]
            #expect(try await page.ask("POST", "config/apply", ["hash": hash, "edits": [edit]]).0 == 200)
            hash = try #require(try await page.form()["hash"] as? String)
        }
        #expect(try Self.versions(place).count == 11 && place.content(own) == Data("# mine".utf8))
        #expect(try (await page.form()["versions"] as? [String])?.contains("inlet.yaml.old") == false)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `readers and old logins may try a change, and may not make it`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        let agent = try await Self.run(place)
        var page = Page(port: port)
        try await page.logIn(Self.reader)
        let form = try await page.form()
        #expect(form["needs_login"] as? Bool == true && form["objection"] is String)
        let order: [String: Any] = ["hash": form["hash"] ?? "", "edits": [Self.added(place)]]
        let (status, trial) = try await page.ask("POST", "config/try", order)
        #expect(status == 200 && trial["ok"] as? Bool == true && trial["files"] == nil, "\(trial)")
        #expect(try await page.ask("POST", "config/apply", order).0 == 403)
        #expect(try await agent.stop() == .code(0))

        // A login of twenty minutes ago, as the file with logins has it.
        let again = try await Self.run(place)
        try await page.logIn(Self.password)
        let file = place.state.appending("logins.json")
        try await again.wait("the login is written") {
            String(decoding: try place.content(file), as: UTF8.self).contains("full")
        }
        #expect(try await again.stop() == .code(0))
        let written = String(decoding: try place.content(file), as: UTF8.self)
        let aged = written.replacing(/"opened":(\d+)/) { "\"opened\":\((Int64($0.output.1) ?? 0) - 1_200_000)" }
        try Data(aged.utf8).write(to: URL(fileURLWithPath: file.string))
        let third = try await Self.run(place)
        let (refused, fault) = try await page.ask("POST", "config/apply", order)
        #expect(refused == 403 && fault["error"] as? String == "login_again", "\(fault)")
        try await page.logIn(Self.password)
        #expect(try await page.ask("POST", "config/apply", order).0 == 200)
        #expect(try await third.stop() == .code(0))
    }

    @Test func `a try tells nobody what a value names`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        let canary = "canary-41b7"
        let secret = try place.folder.write(canary.utf8, to: "secret")
        try place.configure(replacing: "    to: store", with: "    to: store\n    match: { extensions: [txt] }")
        let agent = try await Self.run(place)
        try place.put("new.bin", bytes(10))
        let route: [String: Any] = [
            "list": "routes", "values": ["name": "rest", "to": ["store"], "key": "${file:\(secret)}/{name}"],
        ]
        let folder: [String: Any] = ["list": "watch", "values": ["path": "/nowhere/${file:\(secret)}"]]
        var page = Page(port: port)
        for (login, mayLook) in [(Self.reader, false), (Self.password, true)] {
            try await page.logIn(login)
            let hash = try #require(try await page.form()["hash"] as? String)
            for edit in [route, folder] {
                let (status, trial) = try await page.ask("POST", "config/try", ["hash": hash, "edits": [edit]])
                #expect(status == 200 && trial["checked"] as? Bool == mayLook, "\(trial)")
                #expect(!trial.description.contains(canary), "\(trial)")
                let files = (trial["files"] as? [String: Any])?["planned"] as? Int
                #expect(files == (mayLook ? 1 : nil) || edit["list"] as? String == "watch", "\(trial)")
            }
        }
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a login at the page is no way to run programs`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        let agent = try await Self.run(place)
        var page = Page(port: port)
        try await page.logIn(Self.password)
        let hash = try #require(try await page.form()["hash"] as? String)
        let before = try Self.text(place)
        // Files that arrive there could be named as a former text.
        let above: [String: Any] = [
            "list": "destinations", "name": "above", "values": ["type": "folder", "path": place.folder.path.string],
        ]
        let (refused, fault) = try await page.ask("POST", "config/apply", ["hash": hash, "edits": [above]])
        #expect(refused == 422 && "\(fault["message"] ?? "")".contains("could replace the configuration"), "\(fault)")
        let version = "inlet.yaml.2020-01-01T00-00-00.000Z.old"
        let text = before + "notify: [{ name: x, exec: [/bin/true], on: [failed] }]\n"
        try place.folder.write(text.utf8, to: FilePath(version))
        let (status, answer) = try await page.ask("POST", "config/apply", ["hash": hash, "version": version])
        #expect(status == 422 && "\(answer["message"] ?? "")".contains("program '/bin/true' is new"), "\(answer)")
        #expect(try Self.text(place) == before)
        #expect(try await agent.stop() == .code(0))
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `a file that the agent may not write is left alone, and the form says so`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port)
        try Nobody.own(place.folder.path)
        #expect(chown(place.configuration.string, 0, 65534) == 0)
        chmod(place.configuration.string, 0o640)
        let agent = try await Self.run(place, launcher: Nobody.launcher)
        var page = Page(port: port)
        try await page.logIn(Self.password)
        let form = try await page.form()
        #expect((form["objection"] as? String)?.contains("belongs to user 0") == true, "\(form)")
        let order: [String: Any] = ["hash": form["hash"] ?? "", "edits": [Self.added(place)]]
        #expect(try await page.ask("POST", "config/try", order).1["ok"] as? Bool == true)
        let before = try Self.text(place)
        #expect(try await page.ask("POST", "config/apply", order).0 == 422)
        #expect(try Self.text(place) == before)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `without dashboard's edit nothing is written`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port, "")
        let agent = try await Self.run(place)
        var page = Page(port: port)
        try await page.logIn(Self.password)
        let form = try await page.form()
        #expect((form["objection"] as? String)?.contains("edit: true") == true)
        let order: [String: Any] = ["hash": form["hash"] ?? "", "edits": [Self.added(place)]]
        #expect(try await page.ask("POST", "config/apply", order).0 == 422)
        #expect(try await agent.stop() == .code(0))
    }
}
