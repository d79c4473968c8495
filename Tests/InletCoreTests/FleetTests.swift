import InletCore
import SystemPackage
import Testing

/// What is decided about a fleet without asking it.
struct FleetTests {
    @Test(
        arguments: [
            ("postgresql://u:pw@h:5433/db?sslmode=verify-full&sslrootcert=/etc/ca.pem", "pw"),
            ("postgres://u:p%77@h/db?sslrootcert=/etc/ca.pem", "pw"),
            ("postgresql://h/db?password=pw&sslrootcert=%2Fetc%2Fca.pem", "pw"),
            ("postgresql:///db?host=/run/pg&sslrootcert=/etc/ca.pem", nil),
            ("host=h dbname=db password = 'pw' sslrootcert=/etc/ca.pem", "pw"),
            ("password='p://w' sslrootcert=/etc/ca.pem", "p://w"),
            (#"password='p\w'  sslrootcert=/etc/ca.pem"#, "pw"), (#"sslrootcert='/etc/ca.pem' password=p\w"#, "pw"),
        ] as [(String, String?)])
    func `the password and the files of an address are found in each of its forms`(
        text: String, password: String?
    ) throws {
        let url = try FleetURL(text)
        #expect(url.secrets == [password].compactMap { $0.map { Secret($0) } })
        #expect(url.files == ["/etc/ca.pem"])
    }

    @Test func `all files that libpq reads are named, and relative ones are left out`() throws {
        let url = try FleetURL("host=h sslcert=/c sslkey=/k sslcrl=/l sslcrldir=/d passfile=/p sslrootcert=system")
        #expect(url.files == ["/c", "/k", "/l", "/d", "/p"])
    }

    @Test(arguments: ["", "db.example", "mysql://u:pw@h/db", "https://h", "host", "host=h pw", "password='pw"])
    func `other texts are no addresses, and the error quotes none of them`(text: String) {
        let error = #expect(throws: PatternError.self) { try FleetURL(text) }
        #expect(error?.message.contains("pw") == false)
    }

    @Test(arguments: [
        ("a/", true), ("a/b/", true), ("", false), ("/", false), ("a", false), ("/a/", false), ("a//", false),
        ("../", false), ("a/./", false), ("a\n/", false), (String(repeating: "a", count: 600) + "/", false),
    ])
    func `a prefix is a folder of its own`(prefix: String, isGood: Bool) {
        #expect((FleetShareSettings.objection(toPrefix: prefix) == nil) == isGood)
    }

    @Test(arguments: [
        ("station-3", true), ("Kamera Süd", true), ("", false), ("a\nb", false), ("a\u{9B}b", false),
        (String(repeating: "ü", count: 128), true), (String(repeating: "a", count: 129), false),
    ])
    func `a name has 1 to 128 characters without controls`(name: String, isGood: Bool) {
        #expect((FleetSettings.objection(toName: name) == nil) == isGood)
    }

    @Test(arguments: [
        ("a/b.mov", "a/b_k3f9q2.mov"), ("a/b", "a/b_k3f9q2"), ("b.tar.gz", "b.tar_k3f9q2.gz"),
        ("a.b/c", "a.b/c_k3f9q2"), (".hidden", ".hidden_k3f9q2"), ("b_2.mov", "b_2_k3f9q2.mov"),
    ])
    func `a tag comes before the extension`(key: String, tagged: String) {
        #expect(KeyTemplate.tagged(key, tag: "k3f9q2") == tagged)
    }

    /// The schema knows keys with another agent's tag by this pattern; any other would not be safe without a question.
    @Test func `whatever a key is, the schema finds its tag, and so it does in its next names`() {
        let keys = [
            "a/b.mov", "b", ".x", "a.b/c", "a/b.tar.gz", "x.", "a_bcdefg.mov",
            "a/" + String(repeating: "ä", count: 700) + ".mov",
            String(repeating: "a", count: 1024), "x." + String(repeating: "e", count: 300),
        ]
        for key in keys {
            let tagged = KeyTemplate.tagged(key, tag: "k3f7q2")
            #expect(tagged.utf8.count <= 1024)
            for name in [tagged, KeyTemplate.disambiguated(tagged, number: 12)] {
                let found = name.firstMatch(of: /_([a-z2-7]{6})(?:_[0-9]+)?(?:\.[^.\/]*)?$/)
                #expect(found?.1 == "k3f7q2", "\(name)")
            }
        }
    }

    @Test func `an error says what, since when and whom it concerns, and never shows controls`() {
        let since = WallTime(milliseconds: 43_440_000)
        let place = FleetError.Circumstances(
            server: "db.example:5432", agent: "station-3", since: since, paused: ["/mnt/media"], waitingFor: ["nas4"])
        let away = FleetError(.away, "cannot reach db.example:5432 (connection refused)").sentence(place)
        #expect(
            away == "fleet: cannot reach db.example:5432 (connection refused) since \(since.clock()); "
                + "local folders go on, /mnt/media is paused")
        let nothing = FleetError(.nothingGranted, "x").sentence(place)
        #expect(
            nothing == "fleet: nothing is granted until nas4 has reported (recovering since \(since.clock())) (IN008)")
        let alone = FleetError.Circumstances(server: "db.example:5432", since: since)
        for (state, words) in [
            ("recovering", "until all agents have reported"), ("confirming", "PostgreSQL was restarted"),
        ] {
            let sentence = FleetError(.nothingGranted, "nothing is granted: the fleet is \(state)").sentence(alone)
            #expect(sentence.contains(words) && sentence.contains("since \(since.clock())"))
        }
        let hostile = FleetError.Circumstances(
            server: "a\nb", agent: "c\u{1B}[2J", paused: ["d\n"], waitingFor: ["e\n"])
        for code in FleetError.Code.allCases {
            let sentence = FleetError(code, "f\u{1B}\n", function: "v1_beat").sentence(hostile)
            #expect(!sentence.unicodeScalars.contains { $0.value < 0x20 }, "\(code)")
            #expect(
                sentence.hasPrefix("fleet: ")
                    && sentence.contains("(\(code.rawValue))") == code.rawValue.hasPrefix("IN"))
        }
    }

    @Test func `an identity shows its token to nobody`() {
        let identity = FleetIdentity(
            agent: 3, name: "station-3", tag: "k3f9q2", token: [201, 202, 203], journal: "j", fleet: "f")
        var dumped = "\(identity) \(String(reflecting: identity)) "
        dump(identity, to: &dumped)
        #expect(dumped.contains("station-3") && !dumped.contains("201"))
    }

    @Test func `a restart ends by itself, and lost commits need all agents`() {
        let place = FleetError.Circumstances(server: "db")
        let restarted = FleetError(.nothingGranted, "nothing is granted: the fleet is confirming")
        #expect(restarted.sentence(place) == "fleet: nothing is granted yet: PostgreSQL was restarted (IN008)")
        #expect(restarted.advice.hasPrefix("wait"))
        let restored = FleetError(.nothingGranted, "nothing is granted: the fleet is recovering")
        #expect(
            restored.sentence(place) == "fleet: nothing is granted until all agents have reported (recovering) (IN008)")
        #expect(restored.advice.contains("waive"))
    }

    @Test func `every error has a remedy of its own`() {
        let all = FleetError.Code.allCases.map { FleetError($0, "").advice }
        #expect(!all.contains(""))
        // A person does the same about two of them: nothing.
        #expect(Set(all).count == all.count - 1)
    }

    @Test func `calls are counted by function and by how they ended`() {
        var figures = FleetFigures()
        figures.count("v1_beat", nil, took: .milliseconds(3))
        figures.count("v1_beat", .away, took: .seconds(20))
        figures.count("v1_reserve", .nothingGranted, took: .milliseconds(1))
        #expect(figures.calls["v1_beat"]?.results == ["ok": 1, "away": 1])
        #expect(figures.calls["v1_beat"]?.durations.count == 2)
        #expect(figures.calls["v1_reserve"]?.results == ["IN008": 1])
    }
}
