import InletCore
import Testing

@Suite struct CommandPatternTests {
    @Test(
        arguments: [
            (["/bin/hook", "-q"], ["/bin/hook", "-q"], true),
            (["/bin/hook", "-q"], ["/bin/hook", "-v"], false),
            (["/bin/hook", "-q"], ["/bin/hook"], false),
            (["/bin/hook"], ["/bin/hook", "-q"], false),
            (["/bin/hook"], ["/other/bin/hook"], false),
            (["vips", "{in}", "{out}[Q=80]"], ["/usr/bin/vips", "/s/in.jpg", "/s/out.jpg[Q=80]"], true),
            (["vips", "{in}", "{out}[Q=80]"], ["/usr/bin/vips", "/s/in.jpg", "/s/out.jpg[Q=90]"], false),
            (["vips", "{in}"], ["./vips", "/s/in.jpg"], false),
            (["vips", "{in}"], ["/usr/bin/notvips", "/s/in.jpg"], false),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat /a > /b"], true),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat /a"], false),
            (["sh", "-c", "cat {in}"], ["/bin/sh", "-c", "rm /a"], false),
            (["sh", "-c", "cat {in}"], ["/bin/sh", "-c", "cat /a;id"], false),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat /a > /b$(id)"], false),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat `id` > /b"], false),
            (["cp", "{in}", "{out}"], ["/bin/cp", "/my files/é;", "/b"], true),
            (["cp", "{in}", "{out}"], ["/bin/cp", "-r", "/b"], false),
            (["sh", "{in}{out}"], ["/bin/sh", ""], true),
            ([], [], false), ([], ["/bin/sh"], false), (["sh"], [], false),
        ] as [([String], [String], Bool)]
    )
    func `arguments are a command of the configuration, or not`(
        _ words: [String], _ arguments: [String], _ isMatch: Bool
    ) {
        #expect(CommandPattern(words).matches(arguments) == isMatch)
    }

    @Test(
        arguments: [
            ("/my state/derived/a/.work1/in.jpg", true), ("/my state/derived/in", true), ("/etc/passwd", false),
            ("/my state/derived/../journal.sqlite", false), ("/my state/derived/a --to-command=/bin/sh", false),
            ("/my state/derived", false), ("", false),
        ])
    func `a path that a program is given lies in its place, and is one word`(_ path: String, _ isMatch: Bool) {
        let alone = CommandPattern(["cp", "{in}"], place: "/my state/derived/")
        #expect(alone.matches(["/bin/cp", path]) == isMatch)
        let within = CommandPattern(["sh", "-c", "tar -xf '{in}'"], place: "/my state/derived/")
        #expect(within.matches(["/bin/sh", "-c", "tar -xf '\(path)'"]) == isMatch)
    }

    @Test func `a place with spaces in it is no end of a path`() {
        let pattern = CommandPattern(["sh", "-c", "cat {in} > {out}"], place: "/my state/derived/")
        let (input, output) = ("/my state/derived/.work1/in", "/my state/derived/.work1/out.x")
        #expect(pattern.matches(["/bin/sh", "-c", "cat \(input) > \(output)"]))
        #expect(!pattern.matches(["/bin/sh", "-c", "cat \(input) /etc/passwd > \(output)"]))
        #expect(!pattern.matches(["/bin/sh", "-c", "cat \(input) > /etc/cron.d/x"]))
    }

    @Test func `what a derive rule makes of its words is that command`() {
        let rule = DeriveRule(name: "x", command: ["cp", "a{in}b{out}c{in}", "{out}"], suffix: ".x")
        #expect(
            CommandPattern(rule.command).matches(["/bin/cp"] + rule.arguments(in: "/i-n", out: "/o u,t").dropFirst()))
    }
}
