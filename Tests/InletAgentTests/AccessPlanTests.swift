import InletConfig
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct AccessPlanTests {
    private static let text = """
        state_dir: /var/lib/inlet
        log: { output: /var/log/inlet/inlet.log }
        notify:
          - { name: ops, exec: [/usr/local/bin/hook, -q] }
        destinations:
          lib: { type: folder, path: /srv/library }
          r2: { type: s3, endpoint: "https://s3.example", bucket: b, access_key: a, secret_key: s, ca_file: /etc/pki/ca.pem }
        watch:
          - { path: /srv/drop, archive_dir: /data/done }
          - { path: "/media/*/DCIM", volume_writes: false }
        routes:
          - name: all
            to: [lib, r2]
            on_success: archive
            derive: [{ name: small, command: [vips, "{in}", "{out}"], suffix: .jpg }]
        """

    private static func plan(
        _ text: String, former: FormerRoots.Former = ([], [])
    ) throws -> AccessPlan {
        let config = try ConfigFile.parse(
            text: text.utf8, file: "/etc/inlet/inlet.yaml", types: DestinationKinds.types, environment: [:],
            defaults: ConfigDefaults(stateDirectory: "/var/lib/inlet", home: nil, workingDirectory: "/"))
        return AccessPlan(config, former: former, home: "/people/ada", manual: ["/opt/inlet/share/inlet/manual"]) { _ in
            nil
        }
    }

    /// A machine with these folders and files, links and mounts.
    private static func ground(
        _ there: [FilePath], links: [FilePath: FilePath] = [:], mounts: [(FilePath, String)] = [],
        planned: [FilePath] = []
    ) -> FileSystemLayout {
        let all = Set(
            there.flatMap { path in
                sequence(first: path) { $0 == "/" ? nil : $0.removingLastComponent() }
            })
        let table = [("/", "ext4")] + mounts
        let lines = table.enumerated().map { number, mount in
            "\(number + 1) \(number == 0 ? 0 : 1) 8:\(number) / \(mount.0.string) rw - \(mount.1) /dev/x rw"
        }
        let mounts = MountTable(parsing: Array(lines.joined(separator: "\n").utf8))
        return FileSystemLayout(mounts: mounts, planned: planned) { path in
            if let target = links[path] { return target }
            return all.contains(path) ? path : nil
        }
    }

    private static let usual: [FilePath] = [
        "/var/lib/inlet", "/var/log/inlet", "/etc/inlet/inlet.yaml", "/etc/pki/ca.pem", "/srv/library", "/srv/drop",
        "/data",
        "/media", "/usr/lib", "/proc", "/dev/null",
    ]

    private func rights(_ rules: [AccessRule]) -> [String: Bool] {
        Dictionary(uniqueKeysWithValues: rules.map { ($0.path.string, $0.mayWrite) })
    }

    @Test func `what the configuration names is kept, and what the libraries read`() throws {
        let rules = rights(try Self.plan(Self.text).rules(on: Self.ground(Self.usual)))
        #expect(
            rules == [
                "/var/lib/inlet": true, "/var/log/inlet": true, "/etc/inlet": false, "/etc/pki": false,
                "/srv/library": true, "/srv/drop": true, "/data": true, "/media": false, "/etc": false, "/usr": false,
                "/proc": false, "/dev/null": true,
            ])
    }

    @Test func `the manual may be read where the page serves it`() throws {
        let ground = Self.ground(Self.usual + ["/opt/inlet/share/inlet/manual"])
        #expect(rights(try Self.plan(Self.text).rules(on: ground))["/opt/inlet/share/inlet/manual"] == nil)
        let page = Self.text + "\ndashboard: { listen: \"127.0.0.1:8844\" }\n"
        #expect(rights(try Self.plan(page).rules(on: ground))["/opt/inlet/share/inlet/manual"] == false)
        #expect(rights(try Self.plan(page).rules(on: Self.ground(Self.usual)))["/opt/inlet/share/inlet/manual"] == nil)
    }

    @Test func `the files of a fleet's addresses may be read, and of the home only those of libpq`() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Array("host=db sslkey=/admin/key.pem".utf8), to: "admin.url")
        let fleet = """

            fleet:
              url: "postgresql://u@db/x?sslrootcert=/keys/ca.pem"
              join_file: /join/secret
              admin_url_file: "\(file)"
            """
        let needed: [FilePath] = ["/keys/ca.pem", "/admin/key.pem", "/join/secret", "/people/ada/.postgresql/root.crt"]
        let ground = Self.ground(Self.usual + needed + ["/people/ada/.pgpass"])
        let rules = rights(try Self.plan(Self.text + fleet).rules(on: ground))
        let opened = needed.map { $0.removingLastComponent().string } + ["/people/ada/.pgpass"]
        for path in opened { #expect(rules[path] == false, "\(path)") }
        #expect(rules["/people/ada"] == nil, "the whole home")
        let alone = rights(try Self.plan(Self.text).rules(on: ground))
        #expect(opened.allSatisfy { alone[$0] == nil }, "without a fleet")
    }

    @Test func `files that are only sent need no writing, on cards only where that is allowed`() throws {
        let kept = Self.text.replacing("on_success: archive", with: "on_success: keep")
        #expect(rights(try Self.plan(kept).rules(on: Self.ground(Self.usual)))["/srv/drop"] == false)
        for (key, isWriting) in [
            ("receipts: sidecar", true), ("receipts: folder", false), ("on_failure: quarantine", true),
            ("on_failure: keep", false), ("unit: folder\n    manifest: { format: mhl }", false),
        ] {
            let text = kept.replacing("on_success: keep", with: "on_success: keep\n    \(key)")
            #expect(rights(try Self.plan(text).rules(on: Self.ground(Self.usual)))["/srv/drop"] == isWriting, "\(key)")
        }
        let cards = Self.text.replacing("volume_writes: false", with: "volume_writes: true")
        #expect(rights(try Self.plan(cards).rules(on: Self.ground(Self.usual)))["/media"] == true)
    }

    @Test func `a folder that is only read keeps its lock's folder, unless that is a link or several agents share it`()
        throws
    {
        let kept = Self.text.replacing("on_success: archive", with: "on_success: keep")
        let lock: FilePath = "/srv/drop/.inlet"
        func right(_ text: String, links: [FilePath: FilePath] = [:]) throws -> [String: Bool] {
            rights(try Self.plan(text).rules(on: Self.ground(Self.usual + [lock], links: links)))
        }
        #expect(try right(kept)["/srv/drop/.inlet"] == true && right(kept)["/srv/drop"] == false)
        let linked = try right(kept, links: [lock: "/srv/other"])
        #expect(linked["/srv/drop/.inlet"] == nil && linked["/srv/other"] == nil)
        let shared = kept.replacing("path: /srv/drop,", with: "path: /srv/drop, shared: true,")
        #expect(try right(shared)["/srv/drop/.inlet"] == nil)
    }

    @Test func `a folder in which files are owed to rules that were stricter stays writable`() throws {
        let kept = Self.text.replacing("on_success: archive", with: "on_success: keep")
        let plan = try Self.plan(kept, former: ([], ["/srv/drop"]))
        #expect(rights(try plan.rules(on: Self.ground(Self.usual)))["/srv/drop"] == true)
    }

    /// Orders of a person ask for that, and not for what a later configuration would have allowed.
    @Test func `the folders that the agent may change are those that it was allowed at its start`() {
        let watch = [WatchSettings(path: "/srv/moved"), WatchSettings(path: "/srv/read")]
        let rules = [AccessRule("/srv/moved", mayWrite: true), AccessRule("/srv/read", mayWrite: false)]
        let confined = ConfinementReport(landlock: 4, callsReason: nil, rules)
        #expect(Agent.changeable(watch, confined) == ["/srv/moved"])
        #expect(Agent.changeable(watch, ConfinementReport(reason: "no Landlock")) == nil)
        #expect(Agent.changeable(watch, nil) == nil)
    }

    @Test func `a folder that is missing is kept by the nearest above it, but not by the whole file system`() throws {
        let plan = try Self.plan(Self.text)
        let without = Self.ground(Self.usual.filter { $0 != "/srv/drop" })
        #expect(rights(try plan.rules(on: without))["/srv"] == true)
        let nowhere = Self.ground(Self.usual.filter { !$0.starts(with: "/srv") })
        let error = #expect(throws: Refusal.self) { try plan.rules(on: nowhere) }
        #expect(error?.description.hasPrefix("/srv/library: create it") == true)
    }

    @Test func `of a mount the folder above is kept, so that it may come anew`() throws {
        let plan = try Self.plan(Self.text)
        let disk = Self.ground(Self.usual, mounts: [("/srv/drop", "nfs4")])
        #expect(rights(try plan.rules(on: disk))["/srv"] == true)
        // What is there from the start stays as it is: the state directory's mount is held by the journal.
        let state = Self.ground(Self.usual, mounts: [("/var/lib/inlet", "ext4")])
        #expect(rights(try plan.rules(on: state))["/var/lib"] == nil)
        let local = Self.ground(Self.usual, mounts: [("/srv", "xfs")])
        #expect(rights(try plan.rules(on: local))["/srv/drop"] == true)
        let server = Self.ground(Self.usual, mounts: [("/srv", "nfs4")])
        let error = #expect(throws: Refusal.self) { try plan.rules(on: server) }
        #expect(error?.description.hasPrefix("/srv: mount nfs4 one folder deeper") == true)
    }

    @Test func `where something is meant to be mounted, the folder above is kept also before it is`() throws {
        let plan = try Self.plan(Self.text)
        let away = Self.ground(Self.usual.filter { $0 != "/srv/drop" } + ["/srv/nas"], planned: ["/srv/drop"])
        #expect(rights(try plan.rules(on: away))["/srv"] == true)
        let top = Self.ground(Self.usual, planned: ["/data"])
        let error = #expect(throws: Refusal.self) { try plan.rules(on: top) }
        #expect(error?.description.hasPrefix("/data: mount the fstab entry one folder deeper") == true)
        let elsewhere = Self.ground(Self.usual, mounts: [("/srv", "xfs")], planned: ["/boot", "/srv"])
        #expect(rights(try plan.rules(on: elsewhere))["/srv/drop"] == true)
    }

    @Test func `a log that is a symlink may be written where it leads`() throws {
        let ground = Self.ground(
            Self.usual + ["/data/logs"], links: ["/var/log/inlet/inlet.log": "/data/logs/inlet.log"])
        let rules = rights(try Self.plan(Self.text).rules(on: ground))
        #expect(rules["/var/log/inlet"] == true && rules["/data/logs"] == true)
    }

    @Test func `folders that were watched before are kept as long as they are there`() throws {
        let former: [FilePath] = ["/srv/former", "/gone/former", "/", "/var/lib"]
        let left = (roots: former.map { WatchSettings(path: $0) }, changed: Set<FilePath>())
        let plan = try Self.plan(Self.text, former: left)
        let rules = rights(try plan.rules(on: Self.ground(Self.usual + ["/srv/former"])))
        #expect(rules["/srv/former"] == true && rules["/gone"] == nil && rules["/"] == nil)
        #expect(rules["/var/lib"] == nil)
    }

    @Test func `the list of former folders, which the agent writes, opens nothing of the agent's or the system's`()
        throws
    {
        let text = Self.text.replacing("/usr/local/bin/hook", with: "/opt/hooks/tell")
        var former = WatchSettings(path: "/gone")
        let usual = Self.usual + ["/", "/etc/cron.d", "/root", "/srv/kept", "/opt/hooks/tell"]
        let links: [FilePath: FilePath] = ["/var/lib/inlet/link": "/etc/cron.d", "/proc/self/root": "/"]
        let before = rights(try Self.plan(text).rules(on: Self.ground(usual, links: links)))
        for path in [
            "/", "/etc/cron.d", "/root", "/proc/self/root", "/var/lib/inlet/link", "/var", "/etc/inlet",
            "/var/log/inlet", "/opt/hooks",
        ] as [FilePath] {
            former.archiveDirectory = path
            former.quarantineDirectory = path
            let plan = try Self.plan(text, former: ([former], []))
            #expect(rights(try plan.rules(on: Self.ground(usual, links: links))) == before, "\(path)")
        }
        former.archiveDirectory = "/srv/kept"
        let left = (roots: [former], changed: Set<FilePath>())
        let kept = rights(try Self.plan(text, former: left).rules(on: Self.ground(usual)))
        #expect(kept["/srv/kept"] == true)
        let required = try Self.plan("landlock: required\n" + text, former: left)
        #expect(rights(try required.rules(on: Self.ground(usual)))["/srv/kept"] == nil)
    }

    @Test func `a symlink is followed to what it leads to, of files also to where they are replaced`() throws {
        let ground = Self.ground(
            Self.usual, links: ["/srv/drop": "/tank/in", "/etc/pki/ca.pem": "/secrets/v2/ca.pem"])
        let rules = rights(try Self.plan(Self.text).rules(on: ground))
        #expect(rules["/tank/in"] == true && rules["/srv/drop"] == nil)
        #expect(rules["/secrets/v2"] == false && rules["/etc/pki"] == false)
    }

    @Test(
        arguments: [
            ("", "", nil), ("path: /srv/drop,", "path: /srv/drop/sub,", nil),
            ("path: /srv/drop,", "path: /srv/other,", "/srv/other"), ("/data/done", "/data/elsewhere", nil),
            ("path: /srv/library", "path: /srv", "/srv"), ("/etc/pki/ca.pem", "/etc/ssl/ca.pem", "/etc/ssl/ca.pem"),
            ("/etc/pki/ca.pem", "/people/ada/ca.pem", "/people/ada/ca.pem"), ("/media/*", "/run/media/*", "/run/media"),
            ("on_success: archive", "on_success: keep", nil),
        ] as [(String, String, FilePath?)]
    )
    func `another configuration fits into what was kept, or names the first place that does not`(
        _ old: String, _ new: String, _ place: FilePath?
    ) throws {
        let ground = Self.ground(Self.usual + ["/srv/other", "/people/ada", "/run/media"])
        let rules = try Self.plan(Self.text).rules(on: ground)
        let text = old.isEmpty ? Self.text : Self.text.replacing(old, with: new)
        #expect(try Self.plan(text).beyond(rules, on: ground) == place)
    }

    @Test func `what was only read is beyond when it is to be written, and so is a new program`() throws {
        let ground = Self.ground(Self.usual)
        let kept = try Self.plan(Self.text.replacing("on_success: archive", with: "on_success: keep"))
        let plan = try Self.plan(Self.text)
        #expect(plan.beyond(try kept.rules(on: ground), on: ground) == "/srv/drop")
        #expect(plan.beyond(kept.commands) == nil)
        let other = try Self.plan(Self.text.replacing("hook, -q", with: "hook, -v"))
        #expect(other.beyond(plan.commands) == "/usr/local/bin/hook")
    }

    @Test func `where cards come and go, the programs that eject them and follow them may be started`() throws {
        let ejecting = [
            ["/usr/bin/udisksctl", "unmount", "--no-user-interaction", "-b", "/dev/sdb1"],
            ["/usr/bin/udisksctl", "power-off", "--no-user-interaction", "-b", "/dev/sdb"],
            ["/usr/bin/umount", "--", "/media/EOS"], ["/usr/bin/fusermount3", "-u", "--", "/media/EOS"],
        ]
        func mayStart(_ words: [String], _ text: String) throws -> Bool {
            try Self.plan(text).commands.contains { $0.matches(words) }
        }
        for words in ejecting { #expect(try mayStart(words, Self.text)) }
        #expect(try !mayStart(["/usr/bin/umount", "-a"], Self.text))
        #expect(try !mayStart(["/usr/bin/umount", "--", "relative"], Self.text))
        let without = Self.text.replacing("/media/*/DCIM\", volume_writes: false", with: "/media/EOS\"")
        for words in ejecting { #expect(try !mayStart(words, without)) }
        let lamp = Self.text.replacing("volume_writes: false", with: "volume_writes: false, on_card: [/bin/lamp, red]")
        #expect(try mayStart(["/bin/lamp", "red"], lamp) && !mayStart(["/bin/lamp", "green"], lamp))
    }
}
