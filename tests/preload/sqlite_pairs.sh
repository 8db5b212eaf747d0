# SPDX-License-Identifier: BSD-3-Clause
# sqlite_pairs.sh - transactions for sqlite3 whose loss, or half, would be noticed. Sourced by
# who defines `sql DATABASE`, which runs statements on standard input.

# Transactions without end, each of which prints its number once it is committed. They
# keep two rows of each of the last thousand.
transactions() { # FROM PRAGMAS
    echo "$2"
    awk -v from="$1" 'BEGIN {
        for (i = from; i < from + 200000; i++) {
            print "begin;";
            print "insert into pairs values(" i ", hex(randomblob(100)));";
            print "insert into pairs values(-" i ", hex(randomblob(3000)));";
            print "update pairs set text = text || 1 where number = " i - 50 ";";
            print "delete from pairs where abs(number) = " i - 1000 ";";
            print "commit;";
            print "select " i ";"
        }
    }'
}

check() { # DATABASE ACKNOWLEDGED PRAGMAS
    local found verdict last count alone expected
    found=$(sql "$1" <<SQL | tail -n 4
$3
pragma integrity_check;
select ifnull(max(number), 0) from pairs;
select count(*) from pairs;
select count(*) from pairs p where not exists
    (select 1 from pairs q where q.number = -p.number);
SQL
    )
    read -r -d '' verdict last count alone <<<"$found" || true
    expected=$((last < 1000 ? last * 2 : 2000))
    # The transaction that was killed may have been committed.
    if [ "$verdict $count $alone" != "ok $expected 0" ] ||
        { [ "$last" != "$2" ] && [ "$last" != $(($2 + 1)) ]; }; then
        echo "$1: acknowledged $2, found: $found"
        exit 1
    fi
    committed=$last
}
